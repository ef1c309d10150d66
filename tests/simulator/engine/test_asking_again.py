"""Detectors are asked again: which replies, in what order of passages, and what stands in the journal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from hallulab.detectors.base.protocol import Detector, Traits
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Conversation, Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.engine.asking_again import ask_again, choose_replies
from hallulab.simulator.engine.executors import LocalExecutor
from hallulab.simulator.engine.participants import Participants
from hallulab.simulator.engine.turn_views import reorder_passages
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals, read_second_verdicts
from hallulab.testing.scripted import scripted_pool
from hallulab.testing.tiny_pack import make_pack
from tests.builders import conversation, scored, unscored
from tests.kit.run_folders import write_run
from tests.simulator.engine.cast import Cast
from tests.simulator.engine.test_execution import Listener

PASSAGES = tuple(Passage(id=str(n), document="d", text=f"Text {n}.") for n in range(3))


def hold(chatbot: str, number: int) -> list[Conversation]:
    held = [conversation(f"{chatbot}{n}", ["one", "two"], chatbot, f"p{n}") for n in range(number)]
    return [
        chat.model_copy(
            update={"turns": tuple(turn.model_copy(update={"passages": PASSAGES}) for turn in chat.turns)}
        )
        for chat in held
    ]


class Flipping(Detector):
    """Flags a reply where its first passage is another one than that of the search, unless it is broken."""

    name, version, threshold, traits = "d", "1", 0.5, Traits(needs_model=False)

    def __init__(self) -> None:
        self.broken = False
        self.asked = 0

    async def detect(self, view: TurnView) -> Judgement:
        self.asked += 1
        if self.broken:
            raise ValueError("no answer")
        flagged = view.passages != PASSAGES
        return Judgement(outcome="scored", score=float(flagged), flagged=flagged, spans=None)


class Judges(Cast):
    """A cast of judges who are asked again as they are."""

    def __init__(self, judge: Detector) -> None:
        super().__init__([judge], lambda job: pytest.fail("nobody talks"), lambda *given: pytest.fail("nor"))
        self.second_detectors = {judge.name: judge}


async def ask(folder: RunFolder, judge: Detector, number: int) -> Listener:
    observer = Listener()
    await ask_again([judge], folder, observer, LocalExecutor(Judges(judge)), number, seed=0)
    return observer


def places(folder: RunFolder) -> list[tuple[str, int, bool | None]]:
    lines = map(json.loads, folder.again.read_text().splitlines())
    return [(line["conversation"], line["turn"], line["flagged"]) for line in lines]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    chats = [*hold("a", 6), *hold("b", 6)]
    return write_run(tmp_path / "run", chats, [scored(one.id, turn) for one in chats for turn in range(2)])


def chosen(verdicts: Sequence[object], chats: Sequence[Conversation], number: int) -> Counter[str]:
    found = choose_replies(Journals(chats, verdicts), [Flipping()], number, 0)  # type: ignore[arg-type]
    assert len(set(found)) == len(found)
    return Counter(key.conversation[0] for key in found)


def test_each_chatbot_has_as_many_replies() -> None:
    chats = [*hold("a", 20), *hold("b", 5), *hold("c", 20)]
    verdicts = [scored(one.id, turn) for one in chats for turn in range(2)]
    assert chosen(verdicts, chats, 12) == {"a": 4, "b": 4, "c": 4}
    assert chosen(verdicts, chats, 50) == {"a": 20, "b": 10, "c": 20}
    assert chosen(verdicts, chats, 1000) == {"a": 40, "b": 10, "c": 40}


def test_only_replies_that_the_detector_scored_are_chosen() -> None:
    chats = hold("a", 3)
    verdicts = [scored("a0", 0), unscored("a0", 1), unscored("a1", 0, "abstained"), scored("a2", 0, (), "e")]
    assert chosen(verdicts, chats, 10) == {"a": 1}


def test_a_larger_number_adds_to_the_same_replies_and_another_seed_draws_others() -> None:
    chats = hold("a", 50)
    journals = Journals(chats, [scored(one.id, turn) for one in chats for turn in range(2)])
    few, more, other = (choose_replies(journals, [Flipping()], *how) for how in ((5, 0), (20, 0), (5, 1)))
    assert more[:5] == few
    assert set(few) != set(other)


def test_passages_have_another_order_the_same_each_time() -> None:
    view = TurnView(question="q", passages=PASSAGES, reply="r")
    found = reorder_passages(view).passages
    assert sorted(found, key=lambda one: one.id) == list(PASSAGES)
    assert found != PASSAGES
    assert reorder_passages(view).passages == found
    two = view.model_copy(update={"passages": PASSAGES[:2]})
    assert reorder_passages(two).passages == PASSAGES[1::-1]
    one = view.model_copy(update={"passages": PASSAGES[:1]})
    assert reorder_passages(one) == one
    late = view.model_copy(update={"passages": PASSAGES[:3], "earlier": 1})
    assert reorder_passages(late).passages == (*PASSAGES[1::-1], PASSAGES[2])


def test_who_asks_a_model_has_another_seed_and_the_same_threshold(tmp_path: Path) -> None:
    pool, _ = scripted_pool(lambda body: "Yes")
    asked = Experiment.model_validate({"model": "scripted", "detectors": ["direct-judge", "lexical"]})
    taking = Participants(asked, load_scenario(str(make_pack(tmp_path / "pack"))), pool, True, 1)
    judge, lexical = taking.detectors
    judge.use_calibrated(0.3)
    second = taking.second_detectors
    assert second["lexical"] is lexical
    assert (second["direct-judge"].threshold, judge.threshold) == (0.3, 0.3)
    assert second["direct-judge"].version != judge.version


async def test_second_verdicts_stand_in_their_own_journal_and_the_first_ones_stay(run: RunFolder) -> None:
    before = run.verdicts.read_bytes()
    seen = await ask(run, Flipping(), 6)
    assert (seen.expected_verdicts, seen.verdicts, run.verdicts.read_bytes()) == (6, 6, before)
    found = places(run)
    assert Counter(id[0] for id, _, _ in found) == {"a": 3, "b": 3}
    assert {flagged for _, _, flagged in found} == {True}


async def test_a_run_that_was_cut_off_goes_on_where_it_was(run: RunFolder) -> None:
    await ask(run, Flipping(), 6)
    whole = sorted(places(run))
    lines = run.again.read_bytes().splitlines(keepends=True)
    run.again.write_bytes(b"".join(lines[:2]) + lines[2][:40])  # killed while it wrote the third one
    judge = Flipping()
    await ask(run, judge, 6)
    assert (judge.asked, sorted(places(run))) == (4, whole)
    await ask(run, judge, 6)
    assert (judge.asked, sorted(places(run))) == (4, whole)


async def test_a_second_verdict_that_failed_is_asked_for_once_more(run: RunFolder) -> None:
    judge = Flipping()
    judge.broken = True
    await ask(run, judge, 4)
    await ask(run, judge, 4)
    assert [flagged for _, _, flagged in places(run)] == [None] * 4  # the same failure stands there once
    judge.broken = False
    await ask(run, judge, 4)
    second = read_second_verdicts(run.again, run.read_journals())
    assert ([one.flagged for one in second.verdicts], judge.asked) == ([True] * 4, 12)


async def test_second_verdicts_of_an_older_version_of_the_detector_do_not_count(run: RunFolder) -> None:
    await ask(run, Flipping(), 4)
    run.verdicts.write_text(run.verdicts.read_text().replace('"version":"1"', '"version":"2"'))
    assert list(read_second_verdicts(run.again, run.read_journals()).verdicts) == []

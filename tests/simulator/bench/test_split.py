"""What is learnt from and what is measured on have no group in common."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import DEFAULT_MODEL, ModelPool
from hallulab.detectors.base.protocol import DetectorContext, TrainableDetector, Traits
from hallulab.detectors.registry import DETECTORS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Judgement
from hallulab.scenarios.turn_views import TurnView
from hallulab.simulator.bench.split import CrossValidation, split_into_folds, split_replies
from hallulab.simulator.engine.replies import ReplyJudge
from tests.builders import labelled
from tests.simulator.command_line import CommandLine


def reply(group: str, split: str | None = None) -> LabelledReply:
    return labelled(id=f"{group}-{split}", group=group, meta={} if split is None else {"split": split})


def test_one_half_of_the_groups_is_learnt_from() -> None:
    replies = [reply(group) for group in "aabbccdd"]
    found = split_replies(replies, 0)
    groups = [{item.group for item in part} for part in (found.train, found.test)]
    assert (len(groups[0]), len(groups[1]), groups[0] & groups[1]) == (2, 2, set())
    assert len(found.train) + len(found.test) == 8
    assert found.how == "one half of the groups, chosen with seed 0"


def test_another_seed_chooses_other_groups_and_folds() -> None:
    replies = [reply(str(group)) for group in range(20)]
    assert split_replies(replies, 0).train == split_replies(replies, 0).train
    assert split_replies(replies, 0).train != split_replies(replies, 1).train
    assert split_into_folds(replies, 4, 0) == split_into_folds(replies, 4, 0)
    assert split_into_folds(replies, 4, 0)[0].test != split_into_folds(replies, 4, 1)[0].test


def test_the_datas_own_split_holds() -> None:
    replies = [reply("a", "train"), reply("b", "calibration"), reply("c", "test")]
    found = split_replies(replies, 0)
    assert (found.train, found.test) == (tuple(replies[:2]), tuple(replies[2:]))
    assert found.how == "the data's own split"


def test_a_reply_that_names_no_split_is_learnt_from_where_others_are_for_testing() -> None:
    replies = [reply("a", "test"), reply("b", "test"), reply("c"), reply("d")]
    found = split_replies(replies, 0)
    assert (found.train, found.test) == (tuple(replies[2:]), tuple(replies[:2]))


def test_replies_that_are_all_for_testing_are_halved() -> None:
    found = split_replies([reply("a", "test"), reply("b", "test")], 0)
    assert (len(found.train), len(found.test)) == (1, 1)


@pytest.mark.parametrize(
    ("splits", "told"),
    [(("train", "test"), "group a is in the test split and in another one"), ((None, None), "with --train")],
)
def test_a_group_is_not_cut(splits: tuple[str | None, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        split_replies([reply("a", split) for split in splits], 0)


def test_every_reply_is_tested_in_one_fold_and_no_group_is_in_two() -> None:
    replies = [reply(group) for group in "aaaabbcdefg"]
    folds = split_into_folds(replies, 3, 0)
    assert sorted(item.group for fold in folds for item in fold.test) == list("aaaabbcdefg")
    assert [fold.tested_groups & {item.group for item in fold.train} for fold in folds] == [set()] * 3
    assert [len(fold.train) + len(fold.test) for fold in folds] == [11] * 3
    assert sorted(len(fold.test) for fold in folds) == [3, 4, 4]
    assert folds[2].how == "3 folds over sources, seed 0"


def test_fewer_groups_than_folds_are_refused() -> None:
    with pytest.raises(UsageError, match="--folds 3: the replies are of 2 groups"):
        split_into_folds([reply("a"), reply("a"), reply("b")], 3, 0)


def test_what_folds_learn_from_says_nothing_of_the_datas_own_split() -> None:
    replies = [reply("a", "calibration"), reply("b", "train"), reply("c", "test"), reply("d")]
    folds = split_into_folds(replies, 2, 0)
    assert [one.meta for fold in folds for one in fold.train] == [{}] * 4
    assert sorted(one.id for fold in folds for one in fold.train) == sorted(one.id for one in replies)


NOTHING_WRONG = "there is no hallucinated reply to learn from."


class Memory(TrainableDetector):
    """Flags the replies that it has learnt to be hallucinated."""

    traits = Traits(needs_model=False)
    version = "1"
    threshold = 0.5
    threshold_protocol = "tuned"

    def __init__(self, name: str, context: DetectorContext) -> None:
        self.name = name
        self.known: set[str] = set()

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        self.known = {reply.reply for reply in replies if reply.label}
        if not self.known:
            raise UsageError(NOTHING_WRONG)

    async def detect(self, view: TurnView) -> Judgement:
        found = view.reply in self.known
        return Judgement(outcome="scored", score=float(found), flagged=found)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    monkeypatch.setitem(DETECTORS, "memory", Memory)
    return CommandLine(monkeypatch, capsys)


def written(path: Path, labels: Sequence[bool], *, alike: bool = False) -> Path:
    """Replies with these labels; alike: those of one label say the same."""
    lines = [
        {"reply": f"Reply {label if alike else number}.", "passages": [f"Passage {number}."], "label": label}
        for number, label in enumerate(labels)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def found(out: Path) -> tuple[dict[str, object], dict[str, object]]:
    report = json.loads(out.read_text())
    return report["data"], next(row for row in report["rows"] if row["detector"] == "memory")


def test_one_half_is_learnt_from_and_the_other_is_tested(bench: CommandLine, tmp_path: Path) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False] * 20, alike=True), tmp_path / "out.json"
    ended = bench("bench", path, "--detectors", "memory", "--json", out)
    data, row = found(out)
    assert (data["trained_on"], data["tested_on"], row["n"], row["f1"]) == (20, 20, 20, 1.0)
    said = "Measured on 20 of 40 replies; 20 training examples: one half of the groups, chosen with seed 0.\n"
    assert said in ended.out


def test_other_data_is_learnt_from_and_shared_groups_are_told(bench: CommandLine, tmp_path: Path) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False], alike=True), tmp_path / "out.json"
    other = written(tmp_path / "other.jsonl", [True], alike=True)
    ended = bench("bench", path, "--train", other, "--detectors", "memory", "--json", out)
    data, row = found(out)
    assert (data["trained_on"], data["tested_on"], row["f1"]) == (1, 2, 1.0)
    assert "1 group learnt from and measured on" in ended.out


@pytest.mark.parametrize(("labels", "other"), [([False] * 4, None), ([True, False], [False])])
def test_a_detector_that_cannot_be_trained_keeps_its_model_and_says_so(
    bench: CommandLine, tmp_path: Path, labels: list[bool], other: list[bool] | None
) -> None:
    path, out = written(tmp_path / "data.jsonl", labels), tmp_path / "out.json"
    train = () if other is None else ("--train", written(tmp_path / "other.jsonl", other))
    ended = bench("bench", path, *train, "--detectors", "memory", "--json", out)
    data, row = found(out)
    assert (ended.code, data["not_trained"], row["train_s"]) == (0, {"memory": NOTHING_WRONG}, None)
    assert f"memory was not trained here: {NOTHING_WRONG}" in ended.out


def test_what_fit_raises_is_one_sentence(
    bench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(self: Memory, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        raise ValueError("two\nclasses.")

    monkeypatch.setattr(Memory, "fit", fit)
    ended = bench("bench", written(tmp_path / "data.jsonl", [True, False] * 4), "--detectors", "memory")
    complaint = "error: detector memory: its `fit` raised ValueError: two classes.\n"
    assert (ended.code, ended.err) == (2, complaint)


class Count(TrainableDetector):
    """Flags what is at least its threshold, which is the share of hallucinated replies learnt from."""

    traits = Traits(needs_model=False)
    version = "1"
    threshold_protocol = "tuned"
    fitted: list[tuple[list[str], int]]
    made: list[int]

    def __init__(self, name: str, context: DetectorContext) -> None:
        self.name = name
        self.made.append(context.seed)

    def fit(self, replies: Sequence[LabelledReply], seed: int = 0) -> None:
        self.fitted.append((sorted(reply.reply for reply in replies), seed))
        self.threshold = sum(reply.label is True for reply in replies) / len(replies)

    async def detect(self, view: TurnView) -> Judgement:
        assert self.threshold is not None
        trained_on, _ = self.fitted[-1]
        assert view.reply not in trained_on
        return Judgement(outcome="scored", score=0.5, flagged=self.threshold <= 0.5)


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch, bench: CommandLine) -> CommandLine:
    monkeypatch.setattr(Count, "fitted", [], raising=False)
    monkeypatch.setattr(Count, "made", [], raising=False)
    monkeypatch.setitem(DETECTORS, "count", Count)
    return bench


def test_each_fold_is_judged_by_a_detector_trained_on_the_others(folded: CommandLine, tmp_path: Path) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False, False]), tmp_path / "out.json"
    ended = folded("bench", path, "--detectors", "count", "--folds", "3", "--json", out)
    report = json.loads(out.read_text())
    row = next(row for row in report["rows"] if row["detector"] == "count")
    assert [len(learnt) for learnt, _ in Count.fitted] == [2, 2, 2]
    assert sorted(name for learnt, _ in Count.fitted for name in learnt) == [
        f"Reply {number}." for number in (0, 0, 1, 1, 2, 2)
    ]
    assert sorted(row["fold_thresholds"]) == [0.0, 0.5, 0.5]
    assert (row["n"], row["threshold"], row["recall"], row["precision"]) == (3, 0.333333, 1.0, 0.333333)
    assert row["train_s"] is not None
    data = report["data"]
    assert (data["split"], data["folds"]) == ("3 folds over sources, seed 0", 3)
    assert (data["trained_on"], data["tested_on"], data["groups_in_both"]) == (2, 3, 0)
    assert "count: its threshold is the mean of 3 folds' own, 0.000 to 0.500" in ended.out


@pytest.mark.parametrize(
    ("config", "flags", "seed"),
    [
        ("timeout: 5", (), 0),
        ("seed: 3", (), 3),
        ("seed: 3", ("--seed", "4"), 4),
        ("seed: 3", ("--seed", "0"), 0),
    ],
)
def test_one_seed_is_for_data_training_and_detectors(
    folded: CommandLine, tmp_path: Path, config: str, flags: tuple[str, ...], seed: int
) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False]), tmp_path / "out.json"
    file = tmp_path / "experiment.yaml"
    file.write_text(f"{config}\ndetectors: [count]\n")
    folded("bench", path, "-c", file, "--folds", "2", *flags, "--json", out)
    data = json.loads(out.read_text())["data"]
    assert (data["split"], data["seed"]) == (f"2 folds over sources, seed {seed}", seed)
    assert [trained for _, trained in Count.fitted] == [seed, seed]
    assert Count.made == [seed]


def test_a_fold_without_a_chosen_reply_is_not_trained_for(folded: CommandLine, tmp_path: Path) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False, False]), tmp_path / "out.json"
    ended = folded("bench", path, "--detectors", "count", "--folds", "3", "--limit", "1", "--json", out)
    assert ended.code == 0
    data = json.loads(out.read_text())["data"]
    assert (len(Count.fitted), len(Count.fitted[0][0]), data["tested_on"]) == (1, 2, 1)


def test_a_detector_that_cannot_learn_from_the_first_fold_is_not_trained(
    folded: CommandLine, tmp_path: Path
) -> None:
    path, out = written(tmp_path / "data.jsonl", [True, False]), tmp_path / "out.json"
    folded("bench", path, "--detectors", "memory", "--folds", "2", "--seed", "1", "--json", out)
    assert json.loads(out.read_text())["data"]["not_trained"] == {"memory": NOTHING_WRONG}


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--detectors", "memory", "--folds", "2"), NOTHING_WRONG),  # by the second fold
        (("--folds", "2"), "--folds 2: no detector here learns. Leave --folds out, or name one that does."),
        (
            ("--train", "DATA"),
            "--train DATA: no detector here learns. Leave --train out, or name one that does.",
        ),
        (
            ("--detectors", "count", "--folds", "2", "--train", "DATA"),
            "--folds and --train exclude each other: folds are learnt from the data itself.",
        ),
    ],
)
def test_what_cannot_be_learnt_from_is_one_sentence(
    folded: CommandLine, tmp_path: Path, flags: tuple[str, ...], complaint: str
) -> None:
    path = str(written(tmp_path / "data.jsonl", [True, False]))
    ended = folded("bench", path, *(flag.replace("DATA", path) for flag in flags))
    assert (ended.code, ended.err) == (2, f"error: {complaint.replace('DATA', path)}\n")


def test_no_replies_cannot_be_dealt_into_folds(folded: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"reply": "A reply.", "passages": ["A passage."]}\n')
    ended = folded("bench", path, "--detectors", "count", "--folds", "2")
    assert ended.code == 2
    assert ended.err.startswith(f"error: {path}: no labelled reply is left to judge. Give each a `label`")


class Nobody:
    """Performs no task."""

    async def perform(self, task: Any, emit: Callable[[Any], None]) -> None:
        raise AssertionError(task)


async def test_what_was_learnt_here_judges_here_and_not_in_workers() -> None:
    context = DetectorContext(ModelPool({DEFAULT_MODEL: Endpoint("m", "")}))
    data = [labelled(f"Reply {number}.", number % 2 == 0, group=str(number)) for number in range(8)]
    validation = CrossValidation(split_into_folds(data, 2, 0), data, 1, quiet=True)
    [found] = await validation.evaluate([Memory("memory", context)], 0, [ReplyJudge(Nobody(), parts=2)])
    assert [judgement.score for judgement in found.judgements] == [0.0] * 8

"""Data sets of simulated dialogues: quotas, labels, the split, and what is replaced."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.text.spans import normalize_text
from hallulab.simulator.options.data import DialogueOptions
from hallulab.simulator.planting.data_card import render_dialogue_card, write_dialogues
from hallulab.simulator.planting.dialogue_rows import DIALOGUE_KINDS
from hallulab.simulator.planting.dialogues import DialogueSet, Quota, make_dialogues
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.scripted import Script, ScriptedModel
from hallulab.testing.tiny_pack import words_for_vectors
from tests.extras import hide_extras
from tests.simulator.command_line import CommandLine
from tests.simulator.planting.dialogue_pack import THINGS, say_something_else, write_dialogue_pack

FILE = "min_turns: 1\nmax_turns: {turns}\nmanners: [terse, plain]\n"
"""An experiment file."""


@dataclass(frozen=True)
class WrittenData:
    """A data set, its folder, and how many requests the model was sent."""

    made: DialogueSet
    out: Path
    requests: int

    def rows(self, side: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / f"{side}.jsonl").read_text().splitlines()]

    @property
    def all_rows(self) -> list[dict[str, Any]]:
        return [*self.rows("train"), *self.rows("test")]

    def count_dialogues(self, field: str) -> dict[str, int]:
        """How many dialogues have each value of a field of `meta`."""
        found = {row["meta"]["conversation"]: row["meta"][field] for row in self.all_rows}
        return dict(Counter(found.values()))


def repeat(body: dict[str, Any]) -> str | Mapping[str, float]:
    """Answer the same each time."""
    return {"No": 0.9, "Yes": 0.1} if body.get("logprobs") else "What does the permit cost in this year?"


def write_data(
    folder: Path,
    number: int,
    script: Script = say_something_else,
    language: str | None = None,
    turns: int = 2,
    **options: Any,
) -> WrittenData:
    """Make a data set of the permits in `data` of a folder, and write it."""
    if not (folder / "pack").exists():
        write_dialogue_pack(folder / "pack", language)
        (folder / "experiment.yaml").write_text(FILE.format(turns=turns))
    with words_for_vectors(), ScriptedModel(script) as model:
        wanted = DialogueOptions(
            number=number,
            out=folder / "data",
            scenario=str(folder / "pack"),
            config=folder / "experiment.yaml",
            model=model.name,
            base_url=model.base_url,
            quiet=True,
            **options,
        )
        made = asyncio.run(make_dialogues(wanted))
        write_dialogues(made, wanted)
    return WrittenData(made, folder / "data", len(model.requests))


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    """The noise floor of realism takes a second otherwise."""
    with (
        patch("hallulab.simulator.metrics.realism.PERMUTATIONS", 19),
        patch("hallulab.simulator.metrics.realism.RESAMPLES", 20),
    ):
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> WrittenData:
    """Forty dialogues, half of them with an error, a quarter on the test side."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        return write_data(
            tmp_path_factory.mktemp("permits"),
            40,
            hallucinated=0.5,
            test=0.25,
            topics={"air": 0.4, "rail": 0.3, "road": 0.2, "water": 0.1},
            manners={"terse": 0.3, "plain": 0.7},
        )


def test_the_quotas_are_met(data: WrittenData) -> None:
    assert data.made.list_missed() == []
    assert data.count_dialogues("topic") == {"air": 16, "rail": 12, "road": 8, "water": 4}
    assert data.count_dialogues("manner") == {"terse": 12, "plain": 28}
    assert data.count_dialogues("split") == {"train": 30, "test": 10}
    planted = Counter(
        row["meta"]["split"] for row in data.all_rows if row["meta"]["labelled_by"] == "planted"
    )
    assert planted == {"train": 15, "test": 5}


def test_a_test_side_that_other_quotas_make_smaller_is_missed(data: WrittenData) -> None:
    assert replace(data.made, tested=20).list_missed() == [
        Quota("split", "test", 20, 10),
        Quota("split", "train", 20, 30),
    ]


def require_right_labels(data: WrittenData) -> None:
    """Check every label against its text, its twin and its evidence."""
    for side in ("train", "test"):
        rows = {row["id"]: row for row in data.rows(side)}
        for row in rows.values():
            meta = row["meta"]
            if meta["labelled_by"] == "unlabelled":
                assert (row["label"], row.get("spans")) == (None, None)
                continue
            twin = rows[meta["twin"]]
            assert (twin["question"], twin.get("history"), twin["passages"]) == (
                row["question"],
                row.get("history"),
                row["passages"],
            )
            evidence = normalize_text(" ".join(passage["text"] for passage in row["passages"]))
            if meta["labelled_by"] == "twin":
                assert (row["label"], row["spans"]) == (False, [])
                # A quotation may join two paragraphs.
                assert normalize_text(row["reply"].split(". ")[0]) in evidence
                continue
            [span] = row["spans"]
            assert row["label"] is True
            assert span["label"] == meta["kind"] in DIALOGUE_KINDS
            restored = row["reply"][: span["start"]] + meta["true_text"] + row["reply"][span["end"] :]
            assert "".join(restored.split()) == "".join(twin["reply"].split())
            assert normalize_text(row["reply"]) not in evidence


def require_no_leak(data: WrittenData) -> None:
    """Check that nothing of one side is on the other."""
    train, test = (
        {
            *(("persona", row["meta"]["persona"]) for row in data.rows(side)),
            *(("group", row["group"]) for row in data.rows(side)),
            *(("conversation", row["meta"]["conversation"]) for row in data.rows(side)),
            *(("document", passage["document"]) for row in data.rows(side) for passage in row["passages"]),
            *(("passage", passage["text"]) for row in data.rows(side) for passage in row["passages"]),
        }
        for side in ("train", "test")
    )
    assert train & test == set()
    assert {kind for kind, _ in train} == {"persona", "group", "conversation", "document", "passage"}


def test_every_label_is_right(data: WrittenData) -> None:
    require_right_labels(data)


def test_the_split_leaks_nothing(data: WrittenData) -> None:
    require_no_leak(data)


def test_errors_of_a_side_are_made_of_its_own_documents(data: WrittenData) -> None:
    for side, part in data.made.sides.items():
        others = set(THINGS) - {document.name for document in part.scenario.documents}
        words = {word for row in data.rows(side) for word in row["reply"].lower().replace(".", " ").split()}
        assert words & others == set()


def test_a_planted_dialogue_keeps_the_turns_before_the_error(data: WrittenData) -> None:
    runs = [RunFolder(data.out / "runs" / side).read_conversations() for side in ("train", "test")]
    held = {one.id: one for run in runs for one in run}
    later = [
        row for row in data.all_rows if row["meta"]["labelled_by"] == "planted" and row["meta"]["turn"] == 1
    ]
    assert later
    for row in later:
        first = held[row["meta"]["conversation"]].turns[0]
        assert [one["text"] for one in row["history"]] == [first.user, first.reply]


def test_made_again_no_dialogue_is_simulated_and_the_files_are_equal(data: WrittenData) -> None:
    names = ("train.jsonl", "test.jsonl", "README.md")
    before = [(data.out / name).read_bytes() for name in names]
    again = write_data(
        data.out.parent,
        40,
        hallucinated=0.5,
        test=0.25,
        topics={"air": 0.4, "rail": 0.3, "road": 0.2, "water": 0.1},
        manners={"terse": 0.3, "plain": 0.7},
    )
    assert [(data.out / name).read_bytes() for name in names] == before
    assert again.requests < 20 < data.requests  # those that ask what the endpoint can do


def test_another_split_in_the_same_folder_is_refused(data: WrittenData) -> None:
    with pytest.raises(UsageError, match="is a pack of another data set"):
        write_data(data.out.parent, 40, test=0.5)


def test_the_card_says_what_is_labelled_and_by_whom(data: WrittenData) -> None:
    card = (data.out / "README.md").read_text()
    unlabelled = sum(row["meta"]["labelled_by"] == "unlabelled" for row in data.all_rows)
    assert "| planted | 20 | sentences of the nearest passage into which a rule planted an error" in card
    assert "| twin | 20 | the same sentences without the error, right by their passage |" in card
    assert f"| unlabelled | {unlabelled} | the chatbot's own reply: nobody judged it" in card
    assert "| topic | air | 16 | 16 |" in card
    assert "- documents and personas: Apache-2.0" in card


def test_dialogues_that_repeat_another_are_replaced_and_what_is_lacking_is_counted(tmp_path: Path) -> None:
    made = write_data(tmp_path, 4, repeat, turns=1, test=0, hallucinated=0).made
    assert len(made.dialogues) == 1
    assert made.rejected == {"near duplicates": 12}
    assert [(one.of, one.name, one.wanted, one.met) for one in made.list_missed()][:1] == [
        ("split", "train", 4, 1)
    ]


def test_near_duplicates_are_kept_where_they_are_wanted(tmp_path: Path) -> None:
    made = write_data(tmp_path, 4, repeat, turns=1, test=0, hallucinated=0, keep_duplicates=True).made
    assert (len(made.dialogues), made.near_duplicates, made.list_missed()) == (4, 3, [])


def test_where_no_dialogue_can_be_used_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as error:
        write_data(tmp_path, 2, repeat, test=0)
    assert str(error.value) == (
        "no dialogue can be used, nothing is written: 8 with a flaw of the simulated user. See "
        f"{tmp_path / 'data' / 'runs'}."
    )
    assert not (tmp_path / "data" / "train.jsonl").exists()


def test_a_missing_package_is_told_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_extras(monkeypatch, "local")
    with pytest.raises(UsageError, match=r"^chatbot vanilla: search by vectors needs lancedb"):
        write_data(tmp_path, 4)
    assert not (tmp_path / "data").exists()


def test_dialogues_without_evidence_cannot_be_used(tmp_path: Path) -> None:
    write_dialogue_pack(tmp_path / "pack")
    bot = "{name: mine, kind: callable, options: {target: 'tests.simulator.planting.dialogue_pack:%s'}}"
    chatbots = f"chatbots: [{bot % 'answer_without_evidence'}]\n"
    (tmp_path / "experiment.yaml").write_text(FILE.format(turns=1) + chatbots)
    with pytest.raises(OperationalError, match="nothing is written: 8 without evidence"):
        write_data(tmp_path, 2, test=0)


def test_the_card_says_whose_documents_are_not_split(data: WrittenData, tmp_path: Path) -> None:
    options = DialogueOptions(number=40, out=data.out)
    assert "No persona and no document is on both sides" in render_dialogue_card(data.made, options)
    own = Component(name="vanilla", kind="http", options={"url": "http://localhost"})
    experiment = data.made.experiment.model_copy(update={"chatbots": (own,)})
    card = render_dialogue_card(replace(data.made, experiment=experiment), options)
    assert "sides, for these chatbots have documents of their own: `vanilla`." in card


@pytest.mark.parametrize(
    ("language", "options", "message"),
    [
        (
            None,
            {"goals": {"answer": 1.0}},
            "--goals: scenario permits does not say which reply to its goals is right. Leave it out, or "
            "label the goals (docs/scenario-packs.md).",
        ),
        (
            "hi",
            {"hallucinated": 0.3},
            "--hallucinated 0.3: errors are planted by rules for English, and users write hi here. Leave it "
            "out, or give 0.",
        ),
        (None, {"hallucinated": 30.0}, "--hallucinated 30: give a share from 0 to 1, such as 0.3."),
        (
            None,
            {"kinds": ["contradiction"]},
            "--kinds contradiction: there is no such kind (did you mean `condition`?). Give some of: "
            f"{', '.join(DIALOGUE_KINDS)}.",
        ),
        (
            None,
            {"topics": ["sea"]},
            "--topics sea: there is no such one. Give some of: air, rail, road, water.",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, language: str | None, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as error:
        write_data(tmp_path, 4, language=language, **options)
    assert str(error.value) == message
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("field", ["attack: {distractors: 1}", "pressure: [insists]"])
def test_users_who_attack_or_press_are_refused(tmp_path: Path, field: str) -> None:
    write_dialogue_pack(tmp_path / "pack")
    (tmp_path / "experiment.yaml").write_text(f"{FILE.format(turns=1)}{field}\n")
    name = field.partition(":")[0]
    with pytest.raises(UsageError) as error:
        write_data(tmp_path, 4)
    assert str(error.value) == (
        f"make-data dialogues makes data without attacks. Leave `{name}` out of the file."
    )


def test_in_other_languages_no_errors_are_planted_by_default(tmp_path: Path) -> None:
    data = write_data(tmp_path, 4, language="hi", test=0.5)
    assert {row["meta"]["labelled_by"] for row in data.all_rows} == {"unlabelled"}
    assert data.made.list_missed() == []


def test_two_commands_make_a_data_set_and_measure_a_detector_on_it(
    hallulab: CommandLine, tmp_path: Path
) -> None:
    """The two commands of docs/labelled-data.md."""
    write_dialogue_pack(tmp_path / "pack")
    (tmp_path / "experiment.yaml").write_text(FILE.format(turns=1))
    with words_for_vectors(), ScriptedModel(say_something_else) as model:
        made = hallulab(
            *("make-data", "dialogues", "--number", "10", "--out", tmp_path / "data", "--quiet"),
            *("--scenario", tmp_path / "pack", "-c", tmp_path / "experiment.yaml"),
            *("--model", model.name, "--base-url", model.base_url, "--test", "0.4", "--hallucinated", "0.5"),
        )
    assert (made.code, made.err) == (0, "")
    assert made.out.splitlines()[-1] == "10 dialogues, 5 with a planted error and its twin"
    measured = hallulab("bench", tmp_path / "data" / "test.jsonl", "--detectors", "lexical", "--quiet")
    assert measured.code == 0
    assert "response level: 4 replies" in measured.out


def test_a_missed_quota_ends_with_1_and_is_named(hallulab: CommandLine, tmp_path: Path) -> None:
    write_dialogue_pack(tmp_path / "pack")
    (tmp_path / "experiment.yaml").write_text(FILE.format(turns=1))
    with words_for_vectors(), ScriptedModel(say_something_else) as model:
        made = hallulab(
            *(
                "make-data",
                "dialogues",
                "--number",
                "2",
                "--out",
                tmp_path / "data",
                "--quiet",
                "--test",
                "0",
            ),
            *("--scenario", tmp_path / "pack", "--model", model.name, "--base-url", model.base_url),
            *("--kinds", "name", "--hallucinated", "1", "-c", tmp_path / "experiment.yaml"),
        )
    assert made.code == 1
    assert made.err == "hallucinated train: 2 wanted, 0 there\n"


@pytest.mark.slow
def test_a_thousand_dialogues_have_their_quotas_right_labels_and_no_leak(tmp_path: Path) -> None:
    """The size is what is promised; of fewer dialogues, 1% is none."""
    data = write_data(tmp_path, 1000, turns=1)
    for quota in data.made.list_quotas():
        assert abs(quota.wanted - quota.met) <= 10, quota
    assert len(data.made.dialogues) == 1000
    assert sum(row["meta"]["labelled_by"] == "planted" for row in data.all_rows) == 300
    require_right_labels(data)
    require_no_leak(data)

"""Conversations in other tools' formats: the same when they are imported again, and read by those tools."""

from __future__ import annotations

import asyncio
import csv
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.chats.formats import format_of, read_chats
from hallulab.scenarios.chats.reading import Reading
from hallulab.scenarios.datasets.loader import LoadRequest
from hallulab.scenarios.datasets.ragtruth import load_ragtruth
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.tables import is_formula
from hallulab.scenarios.transcript import Branch, Conversation, Message, Passage, Step, Turn, Verdict
from hallulab.simulator.options.groups import ExportSelection
from hallulab.simulator.records.experiment_json import Imported
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.importing import import_chats
from hallulab.simulator.report.export import export_chats
from tests.builders import conversation, scored, unscored
from tests.fuzz.promises import examples
from tests.kit.run_folders import write_run
from tests.simulator.report.exported import ALL, again, chat, export_and_import, half_judged

WHOLE: tuple[str, ...] = ("openai", "sharegpt", "hf", "parquet", "csv", "jsonl", "otlp")
"""Formats that lose nothing but calls and versions."""
texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(
        ["=1+1", "+1", "-", "@x", "'", "''=", "\t=", "\r\n", "\r", '"', ",", "{}", "[1]", "null"]
    ),
)
passages = st.builds(
    Passage, id=texts, document=texts, text=texts, topic=st.none() | texts,
    score=st.none() | st.floats(-1, 1),
)  # fmt: skip
turns = st.builds(
    Turn, index=st.just(0), user=texts, reply=texts, query=st.none() | texts, goal=st.none() | texts,
    act=st.none() | texts,
    passages=st.lists(passages, max_size=2).map(tuple),
    steps=st.lists(st.builds(Step, name=texts, text=texts), max_size=2).map(tuple),
)  # fmt: skip
dialogues = st.lists(turns, min_size=1, max_size=3).map(
    lambda found: [turn.model_copy(update={"index": index}) for index, turn in enumerate(found)]
)


@st.composite
def runs(draw: st.DrawFn) -> list[Conversation]:
    """Conversations of a run, some of which branch off."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        given_turns = draw(st.integers(0, 2))
        history = tuple(
            Message(role=role, text=draw(texts)) for _ in range(given_turns) for role in ("user", "assistant")
        )
        fields = {
            "scenario": draw(texts), "model": draw(st.text("ab-", min_size=1)), "turns": draw(dialogues),
            "branch": Branch(conversation="c", turn=given_turns, history=history) if given_turns else None,
            "stop_reason": draw(st.sampled_from(["goal_reached", "error", "unknown"])),
            "error": draw(st.none() | texts),
        }  # fmt: skip
        id = f"{draw(st.text('=+-@ab', max_size=4))}{number}"
        found.append(
            conversation(
                id, [], seed=draw(st.integers(-(2**63), 2**63 - 1)), **fields, persona=draw(texts) or "p"
            )
        )
    return found


def read_verdicts(run: RunFolder) -> list[Verdict]:
    """The verdicts of a run, in the order of its conversations and turns."""
    held = run.read_journals()
    order = {one.id: place for place, one in enumerate(held.conversations)}
    return sorted(held.verdicts, key=lambda one: (order[one.conversation], one.turn, one.detector))


OUTCOMES = st.sampled_from(["clean", "flagged", "failed", "abstained"])


@st.composite
def judged_runs(draw: st.DrawFn) -> tuple[list[Conversation], list[Verdict]]:
    """Conversations of a run, and verdicts on some of their turns."""
    found = draw(runs())
    verdicts = []
    for one in found:
        for turn in one.turns:
            outcomes = draw(st.lists(OUTCOMES, max_size=2))
            for detector, outcome in zip("de", outcomes, strict=False):
                if outcome in ("clean", "flagged"):
                    spans = [(0, len(turn.reply))] if outcome == "flagged" and turn.reply else []
                    verdicts.append(scored(one.id, turn.index, spans, detector=detector))
                else:
                    verdicts.append(unscored(one.id, turn.index, outcome, detector=detector))
    return found, verdicts


@pytest.mark.parametrize("format", WHOLE)
@examples(60)
@given(run=judged_runs())
def test_an_import_of_an_export_gives_the_same_conversations_and_verdicts(
    format: str, run: tuple[list[Conversation], list[Verdict]]
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        saved = write_run(folder, *run)
        back = export_and_import(saved, format)
        assert list(back.read_conversations()) == run[0]
        assert read_verdicts(back) == read_verdicts(saved)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("format", ["ragas", "deepeval"])
def test_data_sets_of_other_tools_keep_messages_and_the_words_of_passages(
    format: str, tmp_path: Path
) -> None:
    chats = [chat("a", "It is 1.", "It is 2."), chat("b", "It is 3.", model="n")]
    found = again(write_run(tmp_path, chats), format)
    assert [(one.id, one.model) for one in found] == [("a", "m"), ("b", "n")]
    assert [
        [(turn.user, turn.reply, [passage.text for passage in turn.passages]) for turn in one.turns]
        for one in found
    ] == [
        [("Question 0?", "It is 1.", ["The fee is 200."]), ("Question 1?", "It is 2.", ["The fee is 200."])],
        [("Question 0?", "It is 3.", ["The fee is 200."])],
    ]


@pytest.mark.parametrize("format", ["ragas", "deepeval"])
@pytest.mark.parametrize(
    "odd", ["", " ", "null", "nan", "[]", '["a"]', '{"text": "x"}', "fees.md", "<think>x</think>y"]
)
def test_data_sets_of_other_tools_keep_odd_texts(format: str, odd: str, tmp_path: Path) -> None:
    found = (Passage(id="passage#0", document="passage", text=odd),)
    turn = Turn(index=0, user=odd, reply=odd, passages=found)
    (one,) = again(write_run(tmp_path, [conversation("a", [], turns=(turn,), model="m")]), format)
    assert one.turns == (turn,)


def test_a_sample_of_ragas_is_a_line(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "It is 1.")])
    export_chats(run, "ragas", ALL, tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == (
        '{"user_input": "Question 0?", "response": "It is 1.", "retrieved_contexts": ["The fee is 200."], '
        '"conversation_id": "a", "turn_index": 0, "model": "m"}\n'
    )


def test_cases_of_deepeval_are_a_list(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "It is 1.", "It is 2.")])
    without = ExportSelection(keep_duplicates=True, without=frozenset({"passages"}))
    export_chats(run, "deepeval", without, tmp_path / "x.json")
    beside = {"retrieval_context": [], "conversation_id": "a", "model": "m"}
    assert json.loads((tmp_path / "x.json").read_text()) == [
        {"input": "Question 0?", "actual_output": "It is 1.", "turn_index": 0, **beside},
        {"input": "Question 1?", "actual_output": "It is 2.", "turn_index": 1, **beside},
    ]


def list_spans(path: Path) -> list[dict[str, Any]]:
    """The spans of the first line, with attributes and those of events as objects."""

    def decode(attributes: list[dict[str, Any]]) -> dict[str, Any]:
        return {one["key"]: next(iter(one["value"].values())) for one in attributes}

    line = json.loads(path.read_text().splitlines()[0])
    (scope,) = line["resourceSpans"][0]["scopeSpans"]
    return [
        {
            **span,
            "attributes": decode(span["attributes"]),
            "events": [decode(event["attributes"]) for event in span.get("events", [])],
        }
        for span in scope["spans"]
    ]


def test_a_conversation_is_one_tree_of_spans(tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "It is 1.", "It is 2.")])
    export_chats(run, "otlp", ALL, tmp_path / "x")
    root, *children = list_spans(tmp_path / "x")
    assert [span["name"] for span in (root, *children)] == [
        "invoke_agent", "retrieval", "chat", "retrieval", "chat"
    ]  # fmt: skip
    assert {span["traceId"] for span in children} == {root["traceId"]}
    assert {span["parentSpanId"] for span in children} == {root["spanId"]}
    assert "parentSpanId" not in root
    starts = [int(span["startTimeUnixNano"]) for span in children]
    assert starts == sorted(set(starts))
    assert root["attributes"]["gen_ai.conversation.id"] == "a"
    assert json.loads(children[0]["attributes"]["gen_ai.retrieval.documents"]) == [
        {"id": "fees#0", "document": "fees", "content": "The fee is 200."}
    ]


def test_a_tree_without_what_is_ours_has_the_same_turns(tmp_path: Path) -> None:
    one = chat("a", "It is 1.", "It is 2.")
    run = write_run(tmp_path, [one])
    export_chats(run, "otlp", ALL, tmp_path / "x")
    path = tmp_path / "y.jsonl"
    path.write_text((tmp_path / "x").read_text().replace('"hallulab"', '"other"'))
    (found,) = [found for _, found in read_chats(path, format_of(path))]
    assert found.turns == one.turns


def test_each_verdict_is_an_event_and_one_that_failed_or_abstained_says_so(tmp_path: Path) -> None:
    export_chats(half_judged(tmp_path), "otlp", ALL, tmp_path / "x")
    chats = [span for span in list_spans(tmp_path / "x") if span["name"] == "chat"]
    for event in (event for span in chats for event in span["events"]):
        del event["hallulab.version"]
    told = [
        [
            {key.removeprefix("gen_ai.evaluation."): one for key, one in event.items()}
            for event in span["events"]
        ]
        for span in chats
    ]
    clean = {"score.value": 0.0, "score.label": "not_hallucinated"}
    assert told == [
        [{"name": "d", **clean}, {"name": "e", **clean}],
        [{"name": "d", **clean}, {"name": "e", "error.type": "failed", "explanation": "because"}],
        [
            {"name": "d", "score.value": 1.0, "score.label": "hallucinated", "explanation": "x"},
            {"name": "e", "error.type": "abstained", "explanation": "because"},
        ],
        [],
    ]


def test_a_report_of_imported_chats_has_the_verdicts_of_the_file(tmp_path: Path) -> None:
    back = export_and_import(half_judged(tmp_path), "otlp")
    saved = back.read_experiment()
    assert saved is not None
    assert saved.detectors == {"d": "1", "e": "1"}
    assert saved.imported is not None
    assert saved.imported.notes == ()


@pytest.mark.parametrize("format", ["jsonl", "openai"])
def test_verdicts_of_a_conversation_that_is_left_out_do_not_count(format: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, [chat("a", "It is 1.")], [scored("a", 0, [(0, 2)])])
    other = write_run(tmp_path / "other", [chat("a", "It is 2.")], [scored("a", 0)])
    for one, name in ((run, "x"), (other, "y")):
        export_chats(one, format, ALL, tmp_path / f"{name}.jsonl")
    both = tmp_path / "both.jsonl"
    both.write_text((tmp_path / "x.jsonl").read_text() + (tmp_path / "y.jsonl").read_text())
    back, about = RunFolder(tmp_path / "back"), Imported(file="x", format=format)
    asyncio.run(import_chats(both, back, about, "imported", reading=Reading(skip_bad=1)))
    assert read_verdicts(back) == read_verdicts(run)


def test_an_import_without_verdicts_writes_no_journal_of_them(tmp_path: Path) -> None:
    back = export_and_import(write_run(tmp_path, [chat("a", "It is 1.")]), "openai")
    assert sorted(path.name for path in back.path.iterdir()) == ["conversations.jsonl", "experiment.json"]


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ('"end": 2', '"end": 99', "'d': field `spans.0`: a span [0, 99) outside the reply"),
        ('"turn": 2', '"turn": 7', "'e': it is about no turn of it."),
        ('"version": "1"', '"version": "2"', "'e': verdicts are of several versions of it."),
    ],
)
def test_a_verdict_that_does_not_fit_is_refused(before: str, after: str, wrong: str, tmp_path: Path) -> None:
    export_chats(half_judged(tmp_path), "jsonl", ALL, tmp_path / "x.jsonl")
    head, found, tail = (tmp_path / "x.jsonl").read_text().rpartition(before)
    assert found
    (tmp_path / "x.jsonl").write_text(f"{head}{after}{tail}")
    about = Imported(file="x", format="jsonl")
    with pytest.raises(UsageError) as refused:
        asyncio.run(import_chats(tmp_path / "x.jsonl", RunFolder(tmp_path / "back"), about, "imported"))
    assert str(refused.value).startswith(f"{tmp_path}/x.jsonl: conversation 'a', verdict of {wrong}")
    assert not (tmp_path / "back").exists()


def test_verdicts_are_left_out_with_the_spans(tmp_path: Path) -> None:
    without = ExportSelection(keep_duplicates=True, without=frozenset({"spans"}))
    export_chats(half_judged(tmp_path), "otlp", without, tmp_path / "x")
    assert [span["events"] for span in list_spans(tmp_path / "x")] == [[]] * 9


def test_ragtruth_keeps_messages_and_the_words_of_passages(tmp_path: Path) -> None:
    chats = [chat("a-1", "It is 500.", "Yes."), chat("b", "No.")]
    run = write_run(tmp_path, chats, [scored("a-1", 0, [(6, 9)])])
    found = [
        (one.id, [(turn.user, turn.reply, [passage.text for passage in turn.passages]) for turn in one.turns])
        for one in again(run, "ragtruth")
    ]
    assert found == [
        (one.id, [(turn.user, turn.reply, ["The fee is 200."]) for turn in one.turns]) for one in chats
    ]
    first, *_ = load_ragtruth(LoadRequest("ragtruth", tmp_path / "out.ragtruth"))
    assert [(span.start, span.end) for span in first.spans or ()] == [(6, 9)]


def test_no_cell_of_a_csv_is_a_formula(tmp_path: Path) -> None:
    replies = ("=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "'=1", "\uff1d1", "\n=1", "\ufeff=1", " \uff20x")
    run = write_run(tmp_path, [chat("=a", *replies)])
    export_chats(run, "csv", ALL, tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if is_formula(cell)]
    (held,) = (read.conversation for read in read_chats(tmp_path / "x.csv", "csv"))
    assert (held.id, tuple(turn.reply for turn in held.turns)) == ("=a", replies)


def test_parquet_is_read_by_pandas(tmp_path: Path) -> None:
    export_chats(write_run(tmp_path, [chat("a", "Yes.")]), "parquet", ALL, tmp_path / "x.parquet")
    frame = pandas.read_parquet(tmp_path / "x.parquet")
    assert (frame["id"][0], frame["messages"][0][1]) == ("a", {"role": "assistant", "content": "Yes."})


def test_a_data_set_folder_is_loaded_by_datasets(tmp_path: Path) -> None:
    import datasets

    run = write_run(
        tmp_path, [chat("a", "It is 500.", model="qwen2.5-coder-1.5b")], [scored("a", 0, [(6, 9)])]
    )
    export_chats(run, "hf", ALL, tmp_path / "out")
    found = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    (row,) = found["train"]
    assert [message["content"] for message in row["messages"]] == ["Question 0?", "It is 500."]
    assert row["turns"][0]["spans"] == [{"detector": "d", "start": 6, "end": 9, "text": "x"}]
    card = (tmp_path / "out" / "README.md").read_text()
    assert "- model `qwen2.5-coder-1.5b`: Apache-2.0" in card


def test_lines_that_differ_have_one_type_for_a_loader_of_json(tmp_path: Path) -> None:
    import datasets

    bare = Turn(index=0, user="?", reply="Yes.")
    run = write_run(tmp_path, [conversation("a", [], turns=[bare]), chat("b", "No.", error="Failed.")])
    for format in ("openai", "sharegpt"):
        path = tmp_path / f"{format}.jsonl"
        export_chats(run, format, ALL, path)
        found = datasets.load_dataset("json", data_files=str(path), cache_dir=str(tmp_path / "cache"))
        assert len(found["train"]) == 2


def trained_on(example: dict[str, Any]) -> list[tuple[str, str]]:
    """What LLaMA-Factory trains on, by the rules of its documentation (data/README.md, sharegpt format).

    Human and observation are at odd places, gpt and function at even ones, and their number is even; else the
    example is skipped.
    """
    messages = example["conversations"]
    roles = [
        (("human", "observation"), ("gpt", "function_call"))[place % 2] for place in range(len(messages))
    ]
    sound = all(message["from"] in role for message, role in zip(messages, roles, strict=True))
    if not sound or len(messages) % 2 or not isinstance(example["system"], str):
        return []
    return [(message["from"], message["value"]) for message in messages]


def test_sharegpt_keeps_the_rules_of_trainers(tmp_path: Path) -> None:
    system = Turn(index=0, user="A?", reply="B.", steps=(Step(name="system", text="Be brief."),))
    run = write_run(tmp_path, [conversation("a", [], turns=[system]), chat("b", "C.", "D.")])
    export_chats(run, "sharegpt", ALL, tmp_path / "x.jsonl")
    one, two = (json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines())
    assert (one["system"], trained_on(one)) == ("Be brief.", [("human", "A?"), ("gpt", "B.")])
    assert [role for role, _ in trained_on(two)] == ["human", "gpt"] * 2


@pytest.mark.slow
def test_sharegpt_is_read_by_a_trainers_own_loader(tmp_path: Path) -> None:
    import datasets
    from trl.data_utils import is_conversational, maybe_convert_to_chatml

    run = write_run(tmp_path, [chat("a", "It opens at 7.", "No."), chat("b", "C.")])
    export_chats(run, "sharegpt", ALL, tmp_path / "x.jsonl")
    lines = datasets.load_dataset(
        "json", data_files=str(tmp_path / "x.jsonl"), cache_dir=str(tmp_path / "cache")
    )
    read = [maybe_convert_to_chatml(line) for line in lines["train"]]
    assert all(is_conversational(example) for example in read)
    assert [[message["content"] for message in example["messages"]][1::2] for example in read] == [
        ["It opens at 7.", "No."],
        ["C."],
    ]
    assert [message["role"] for message in read[0]["messages"]] == ["human", "gpt"] * 2

"""Labelled rows as other tools write them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.datasets.offsets import LabelPlace, locate_labels
from hallulab.scenarios.labelled import LabelledData
from tests.kit.refusals import refusal

ROW = {"question": "The fee?", "contexts": ["It is 5 euros."], "answer": "It is 6 euros."}
WOMAN = "👩"
"""Two UTF-16 units, four bytes of UTF-8."""


def load(folder: Path, *rows: dict[str, Any], name: str = "mine.jsonl") -> LabelledData:
    path = folder / name
    text = json.dumps(rows) if name.endswith(".json") else "\n".join(map(json.dumps, rows))
    path.write_text(text, encoding="utf-8")
    return load_labelled(str(path))


def refuse(folder: Path, *rows: dict[str, Any]) -> str:
    return refusal(load, folder, *rows).removeprefix("mine.jsonl, ")


def test_a_row_by_its_usual_names_is_read(tmp_path: Path) -> None:
    data = load(tmp_path, ROW | {"label": True, "score": 0.4})
    (reply,) = data
    assert (reply.question, reply.reply, reply.label) == ("The fee?", "It is 6 euros.", True)
    assert [passage.text for passage in reply.passages] == ["It is 5 euros."]
    assert data.notes == ("Read as: user ← question, reply ← answer, passages ← contexts; not read: score.",)


def test_our_own_names_say_nothing(tmp_path: Path) -> None:
    row = {"reply": "Yes.", "passages": ["A."], "label": True, "question": "B?", "meta": {"split": "test"}}
    assert load(tmp_path, row).notes == ()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"response": "It is 5.", "label": True}, "`answer` and `response` could both be the reply."),
        (
            {"label": True, "faithful": True},
            "`label` and `faithful` could both be the label. Delete or rename one.",
        ),
        ({"label": 0.7}, "label: 0.7 is no label. Give `label`: true for a hallucinated reply, else false."),
        (
            {"spans": [{"start": 0, "end": 2, "text": "6 euros"}]},
            "spans: the label [0, 2) has the words '6 euros', and 'It' stands there, counted in "
            "characters, UTF-16 units or bytes. Correct the offsets.",
        ),
        (
            {"contexts": ["doc_1", "kb/fees.md#3"], "label": True},
            "passages: 'doc_1' is the name of a passage, and not its words. Put its words there.",
        ),
        ({"label": [[0, 2, "HALL"]]}, "label: is a list or an object. Give places as `spans`: objects with"),
        *(
            ({"spans": [{"start": 0, "end": 14, key: value}]}, f"spans: a span has `{key}` {written}, so its")
            for key, value, written in (
                ("label", "Supported", '"Supported"'),
                ("label", False, "false"),
                ("hallucinated", 0, "0"),
                ("is_supported", "yes", '"yes"'),
                ("prob", 0.2, "0.2"),
                ("votes", 1, "1"),
                ("label", "O", '"O"'),
                ("type", "correct", '"correct"'),
                ("verdict", "supported", '"supported"'),
            )
        ),
        *(
            ({name: [place]}, f"{name}: {written} is no place in the reply. Give whole numbers `start`")
            for name, place, written in (
                ("labels", "O", '"O"'),
                ("labels", 1, "1"),
                ("spans", [0, 2, "x", "y"], '[0, 2, "x", "y"]'),
                ("spans", {"start": 0}, '{"start": 0}'),
                ("annotations", {"text": "6 euros"}, '{"text": "6 euros"}'),
            )
        ),
        (
            {"answer": "5 or 5 euros.", "spans": ["5"]},
            "spans: '5' stands 2 times in the reply, and is marked 1 times without `start` and `end`.",
        ),
        ({"spans": ["7"]}, "spans: '7' stands 0 times in the reply"),
        ({"spans": ["6", [6, 7]]}, "spans: '6' stands 1 times in the reply"),
        (
            {"annotations": [{"result": [{"value": {"start": 0, "end": 2}}]}]},
            "annotations: is written as by Label Studio. Give the `value` of each of its results:",
        ),
    ],
)
def test_a_row_that_can_be_read_in_two_ways_or_none_is_refused(
    tmp_path: Path, change: dict[str, Any], complaint: str
) -> None:
    assert refuse(tmp_path, ROW | change).startswith(f"line 1: {complaint}")


@pytest.mark.parametrize(
    ("label", "hallucinated"),
    [
        ({"label": 1}, True),
        ({"label": "0"}, False),
        ({"label": 1.0}, True),
        ({"isHallucinated": "no"}, False),
        ({"faithful": True}, False),
        ({"is_supported": 0}, True),
        ({"label": "SUPPORTED"}, False),
        ({"label": "not_supported"}, True),
        ({"label": "non-hallucination"}, False),
        ({"label": "Partially grounded"}, True),
        ({"label": "fully faithful"}, False),
        ({"Hallucinated?": "Y"}, True),
        ({"not_hallucinated": "yes"}, False),
        ({"adherence_score": False}, True),
    ],
)
def test_a_label_means_what_its_name_or_its_word_says(
    tmp_path: Path, label: dict[str, Any], hallucinated: bool
) -> None:
    (reply,) = load(tmp_path, ROW | label)
    assert reply.label is hallucinated


def test_how_a_number_was_read_as_a_label_is_told(tmp_path: Path) -> None:
    assert load(tmp_path, ROW | {"label": 1}).notes[1:] == (
        "`label`: true (1, yes) was read as hallucinated.",
    )


def test_rows_that_differ_in_the_label_alone_are_told(tmp_path: Path) -> None:
    data = load(tmp_path, ROW | {"label": True}, ROW | {"label": True}, ROW | {"label": False})
    assert data.notes[1:] == ("Rows that repeat a reply with another label, each of which counts: 1.",)


@pytest.mark.parametrize("blank", [" ", "nan", None])
def test_a_blank_label_is_none(tmp_path: Path, blank: object) -> None:
    data = load(tmp_path, ROW | {"label": True}, ROW | {"label": blank})
    assert (len(data), data.left_out) == (1, {"unlabelled": 1})


@pytest.mark.parametrize(
    "spans",
    [
        {"spans": [[6, 13]]},
        {"labels": [[6, 13, "HALL"]]},
        {"spans": "[(6, 13)]"},
        {"hallucination_spans": ["6 euros"]},
        {"spans": [{"text": "6 euros"}]},
        {"hallucination_labels": '[{"start": 6, "end": 13, "text": "6 euros", "implicit_true": false}]'},
    ],
)
def test_a_place_may_be_a_pair_of_offsets_or_a_quotation(tmp_path: Path, spans: dict[str, Any]) -> None:
    (reply,) = load(tmp_path, ROW | spans)
    assert [(span.start, span.end) for span in reply.spans or ()] == [(6, 13)]


def test_places_of_several_annotators_are_joined_and_it_is_told(tmp_path: Path) -> None:
    spans = [{"start": start, "end": 13, "annotator": name} for start, name in ((6, "a"), (8, "b"))]
    data = load(tmp_path, ROW | {"spans": spans})
    assert [span.start for span in data[0].spans or ()] == [6, 8]
    assert data.notes[1:] == ("`spans`: a place counts if one `annotator` marked it.",)


def test_a_json_list_is_a_file_of_rows(tmp_path: Path) -> None:
    data = load(tmp_path, ROW | {"label": True}, ROW | {"label": False}, name="mine.json")
    assert [reply.id for reply in data] == ["line-1", "line-2"]


def test_a_null_is_a_key_that_is_left_out_and_a_number_may_be_a_name(tmp_path: Path) -> None:
    row = ROW | {"id": 5, "group": 7, "question": None, "history": None, "meta": None, "spans": ""}
    (reply,) = load(tmp_path, row | {"label": True})
    assert (reply.id, reply.group, reply.question, reply.history, reply.meta) == ("5", "7", "", (), {})


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet"])
def test_a_table_is_a_file_of_rows(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"mine.{ending}"
    rows = [
        {**ROW, "contexts": json.dumps(ROW["contexts"]), "label": label, "spans": spans}
        for label, spans in (("1", ""), ("0", "[]"), ("", '[{"start": 6, "end": 7}]'), ("", ""))
    ]
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), delimiter="\t" if ending == "tsv" else ",")
        table.writeheader()
        table.writerows(rows)
        packed = gzip.compress if ending.endswith("gz") else bytes
        path.write_bytes(packed(text.getvalue().encode()))
    data = load_labelled(str(path))
    assert [(reply.label, reply.spans and reply.spans[0].start) for reply in data] == [
        (True, None), (False, ()), (True, 6),
    ]  # fmt: skip
    assert [passage.text for passage in data[0].passages] == ["It is 5 euros."]
    assert data.left_out == {"unlabelled": 1}


def test_a_spreadsheet_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "mine.xlsx").write_bytes(b"PK")
    assert refusal(load_labelled, str(tmp_path / "mine.xlsx")).endswith(
        "mine.xlsx: labels are not read from a spreadsheet. Save it as CSV UTF-8."
    )


def test_an_empty_reply_is_left_out_and_counted(tmp_path: Path) -> None:
    data = load(tmp_path, ROW | {"label": True}, ROW | {"answer": " ", "label": True})
    assert (len(data), data.left_out) == (1, {"empty reply": 1})


def test_a_text_is_one_passage_and_objects_give_their_text(tmp_path: Path) -> None:
    one = {**ROW, "contexts": "It is 5.", "label": True}
    other = {**ROW, "contexts": [{"page_content": "It is 7.", "metadata": {"source": "fees"}}], "label": True}
    first, second = load(tmp_path, one, other)
    assert [passage.text for passage in first.passages] == ["It is 5."]
    assert [(passage.document, passage.text) for passage in second.passages] == [("fees", "It is 7.")]


@pytest.mark.parametrize(("start", "unit"), [(2, "characters"), (3, "UTF-16 units"), (5, "bytes")])
def test_the_words_of_a_label_tell_what_its_offsets_count(start: int, unit: str) -> None:
    located = locate_labels(f"{WOMAN} 9 euros", [LabelPlace(start, start + 7, "9 euros")])
    assert (located.places, located.unit) == (((2, 9),), unit)


def test_converted_offsets_are_told(tmp_path: Path) -> None:
    row = ROW | {"answer": f"{WOMAN} 9 euros", "spans": [{"start": 3, "end": 10, "text": "9 euros"}]}
    data = load(tmp_path, row)
    assert data[0].spans is not None
    assert [(span.start, span.end) for span in data[0].spans] == [(2, 9)]
    assert data.notes[1:] == (
        "`spans`: offsets count UTF-16 units where their words say so; they were converted.",
    )


@given(st.text(min_size=1), st.data())
def test_labels_with_their_words_are_found_whatever_is_counted(reply: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(reply) - 1))
    end = data.draw(st.integers(start + 1, len(reply)))
    sizes = {
        "characters": len,
        "UTF-16 units": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
        "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    }
    for measure in sizes.values():
        place = LabelPlace(measure(reply[:start]), measure(reply[:end]), reply[start:end])
        ((found, until),) = locate_labels(reply, [place]).places
        assert reply[found:until] == reply[start:end]


SAMPLE = {
    "prompt": "User request: The fee?\n\nIt is 5 euros.", "answer": "It is 6 euros.",
    "labels": [{"start": 6, "end": 7, "label": "evident conflict", "category": "contradiction"}],
    "split": "dev", "task_type": "qa", "dataset": "ragtruth", "language": "en",
    "context": "It is 5 euros.", "question": "The fee?", "metadata": {},
}  # fmt: skip


def test_a_sample_of_lettucedetect_is_read_as_it_is(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, SAMPLE, name="train.json")
    assert (reply.question, reply.reply, reply.task, reply.label) == (
        "The fee?", "It is 6 euros.", "qa", True,
    )  # fmt: skip
    assert reply.spans is not None
    assert [(span.start, span.end, span.label) for span in reply.spans] == [(6, 7, "evident conflict")]
    assert reply.meta == {"split": "dev", "source": "ragtruth", "language": "en"}


def test_an_older_sample_has_its_evidence_in_the_prompt(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, SAMPLE | {"context": None, "question": None, "labels": []})
    assert ([passage.text for passage in reply.passages], reply.label) == ([SAMPLE["prompt"]], False)


def test_a_split_of_lettucedetect(tmp_path: Path) -> None:
    load(tmp_path, SAMPLE, SAMPLE | {"split": "test"}, name="data.json")
    data = load_labelled("lettucedetect", tmp_path, "test")
    assert [(reply.id, reply.dataset) for reply in data] == [("data-line-2", "lettucedetect")]


def test_offsets_beside_an_emoji_without_words_are_told(tmp_path: Path) -> None:
    row = ROW | {"answer": f"{WOMAN} 9 euros", "spans": [{"start": 2, "end": 9}]}
    assert load(tmp_path, row).notes[1:] == (
        "`spans`: offsets were read as characters; some tools count an emoji twice. With the `text` of each "
        "span they can be checked.",
    )

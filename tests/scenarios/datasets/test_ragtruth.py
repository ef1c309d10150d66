from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import GoldSpan, LabelledData
from tests.kit.refusals import refusal

QA = {
    "source_id": "7",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {"question": "How deep?", "passages": "passage 1:It is deep.\n\npassage 2:40 m.\n\n"},
    "prompt": "",
}
SUMMARY = QA | {"source_id": "8", "task_type": "Summary", "source_info": "A man left.\n\nHe is back.\n"}
BUSINESS = {
    "name": "Kiosk",
    "address": "1 Quay",
    "city": "Turku",
    "state": "FI",
    "categories": "Food, Ice Cream",
    "hours": {"Monday": "9:0-22:30", "Sunday": "0:0-0:0"},
    "attributes": {
        "RestaurantsTakeOut": True,
        "WiFi": "free",
        "Music": None,
        "BusinessParking": {"valet": False, "streetParking": True},
    },
    "business_stars": 3.5,
    "review_info": [{"review_stars": 4.0, "review_date": "2020-05-11", "review_text": "Good.\n"}],
}
RECORD = QA | {"source_id": "9", "task_type": "Data2txt", "source": "Yelp", "source_info": BUSINESS}
LABEL = {"start": 6, "end": 10, "text": "50 m", "meta": "why", "label_type": "Evident Conflict"}
RESPONSE = {
    "id": "1", "source_id": "7", "model": "gpt-4-0613", "temperature": 0.7, "labels": [LABEL],
    "split": "train", "quality": "good", "response": "About 50 m.",
}  # fmt: skip


def write(folder: Path, responses: list[dict[str, Any]], *sources: dict[str, Any]) -> Path:
    for name, rows in (("response", responses), ("source_info", list(sources) or [QA])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def load(folder: Path, *responses: dict[str, Any], **arguments: Any) -> LabelledData:
    return load_labelled("ragtruth", write(folder, list(responses)), **arguments)


def refused(folder: Path, source: str | None = None, options: dict[str, Any] | None = None) -> str:
    return refusal(load_labelled, "ragtruth", folder, source, options)


def test_a_response_becomes_a_labelled_reply(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, RESPONSE)
    assert (reply.id, reply.dataset, reply.task, reply.group) == ("1", "ragtruth", "qa", "7")
    assert (reply.question, reply.reply) == ("How deep?", "About 50 m.")
    assert (reply.label, reply.spans) == (True, (GoldSpan(start=6, end=10, label="Evident Conflict"),))
    assert reply.meta == {"model": "gpt-4-0613", "temperature": 0.7, "split": "train", "source": "MARCO"}


def test_passages_of_a_question_are_kept_apart(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, RESPONSE)
    assert [(passage.id, passage.document, passage.text) for passage in reply.passages] == [
        ("7#passage-1", "7", "It is deep."),
        ("7#passage-2", "7", "40 m."),
    ]


def test_passages_without_headings_are_one(tmp_path: Path) -> None:
    plain = QA | {"source_info": {"question": "How deep?", "passages": "See passage 1: deep."}}
    (reply,) = load_labelled("ragtruth", write(tmp_path, [RESPONSE], plain))
    assert [passage.text for passage in reply.passages] == ["See passage 1: deep."]


def test_an_article_keeps_its_paragraphs(tmp_path: Path) -> None:
    long = SUMMARY | {"source_info": f"{'A word. ' * 40}\n\n{'Two words. ' * 40}"}
    (reply,) = load_labelled("ragtruth", write(tmp_path, [RESPONSE | {"source_id": "8"}], long))
    assert [passage.text for passage in reply.passages] == [
        ("A word. " * 40).strip(),
        ("Two words. " * 40).strip(),
    ]
    assert [passage.id for passage in reply.passages] == ["8#0", "8#1"]
    assert (reply.task, reply.question) == ("summary", "")


def test_a_record_is_flattened_into_profile_hours_attributes_and_reviews(tmp_path: Path) -> None:
    (reply,) = load_labelled("ragtruth", write(tmp_path, [RESPONSE | {"source_id": "9"}], RECORD))
    assert reply.task == "data2txt"
    assert {passage.id: passage.text for passage in reply.passages} == {
        "9#profile": (
            "name: Kiosk\naddress: 1 Quay\ncity: Turku\nstate: FI\ncategories: Food, Ice Cream\nstars: 3.5"
        ),
        "9#hours": "Monday: 9:00-22:30 (9 AM - 10:30 PM)\nSunday: 0:00-0:00 (12 AM - 12 AM)",
        "9#attributes": (
            "restaurants take out: yes\nWiFi: free\nmusic: not stated\n"
            "business parking: valet no, street parking yes"
        ),
        "9#review-1": "review stars: 4.0 (4)\nreview date: 2020-05-11\nGood.",
    }


def test_a_record_without_hours_and_attributes_has_no_such_passages(tmp_path: Path) -> None:
    bare = RECORD | {"source_info": BUSINESS | {"hours": None, "attributes": {}, "review_info": []}}
    (reply,) = load_labelled("ragtruth", write(tmp_path, [RESPONSE | {"source_id": "9"}], bare))
    assert [passage.id for passage in reply.passages] == ["9#profile"]


def test_responses_of_poor_quality_are_left_out_and_counted(tmp_path: Path) -> None:
    data = load(
        tmp_path,
        RESPONSE,
        RESPONSE | {"id": "2", "quality": "truncated"},
        RESPONSE | {"id": "3", "quality": "incorrect_refusal"},
        RESPONSE | {"id": "4", "labels": [], "response": " "},
    )
    assert [reply.id for reply in data] == ["1"]
    assert data.left_out == {"truncated": 1, "incorrect_refusal": 1, "empty reply": 1}


@pytest.mark.parametrize("choice", ["implicit_true", "due_to_null"])
def test_an_option_takes_a_kind_of_span_out(tmp_path: Path, choice: str) -> None:
    response = RESPONSE | {"labels": [LABEL | {choice: True}]}
    assert load(tmp_path, response)[0].label is True
    (reply,) = load(tmp_path, response, options={choice: False})
    assert (reply.label, reply.spans) == (False, ())


def test_an_option_leaves_other_spans(tmp_path: Path) -> None:
    options = {"implicit_true": False, "due_to_null": False}
    assert load(tmp_path, RESPONSE, options=options)[0].spans == load(tmp_path, RESPONSE)[0].spans


def test_a_part_is_a_task_or_a_split(tmp_path: Path) -> None:
    test = RESPONSE | {"id": "2", "source_id": "8", "split": "test"}
    write(tmp_path, [RESPONSE, test], QA, SUMMARY)
    names = ("qa", "summary", "data2txt", "train", "test")
    parts = {part: [reply.id for reply in load_labelled("ragtruth", tmp_path, part)] for part in names}
    assert parts == {"qa": ["1"], "summary": ["2"], "data2txt": [], "train": ["1"], "test": ["2"]}
    said = f"--source dev: ragtruth has no such part. Give one of: {', '.join(names)}."
    assert refused(tmp_path, "dev") == said


def test_both_files_are_needed(tmp_path: Path) -> None:
    write(tmp_path, [RESPONSE])
    (tmp_path / "source_info.jsonl").unlink()
    assert refused(tmp_path) == (
        "source_info.jsonl: there is no such file. "
        "Give the folder that holds source_info.jsonl with --data DIR."
    )


@pytest.mark.parametrize(
    ("dataset", "complaint"),
    [
        (
            "ragtruth",
            "there is no option `implicit` (did you mean `implicit_true`?); "
            "there are: implicit_true, due_to_null.",
        ),
        ("begin", "it has no options. Leave implicit out."),
    ],
)
def test_an_unknown_option_is_refused(tmp_path: Path, dataset: str, complaint: str) -> None:
    write(tmp_path, [RESPONSE])
    said = refusal(load_labelled, dataset, tmp_path, options={"implicit": False})
    assert said == f"data set {dataset}: {complaint}"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"source_id": "70"},
            "source_id: 70 is not in source_info.jsonl. Add the source, or delete the line.",
        ),
        ({"id": "1"}, "id: 1 occurs before. Give each line its own id."),
        (
            {"response": "50 m."},
            "the label [6, 10) is no stretch of the reply, which has 5 characters. "
            "Correct it; see docs/labelled-data.md.",
        ),
        ({"labels": [{"start": 0}]}, "labels.0.end: this key is missing. Add it; see docs/labelled-data.md."),
    ],
)
def test_a_wrong_response_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    write(tmp_path, [RESPONSE, RESPONSE | {"id": "2"} | change])
    assert refused(tmp_path) == f"response.jsonl, line 2: {complaint}"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (QA, "source_id: 7 occurs before. Delete one of the two lines."),
        (
            SUMMARY | {"source_info": {"question": "x"}},
            "source_info: must be text, not an object. Give a text.",
        ),
        (
            RECORD | {"source_info": {key: value for key, value in BUSINESS.items() if key != "city"}},
            "source_info.city: this key is missing. Add it; see docs/labelled-data.md.",
        ),
    ],
)
def test_a_wrong_source_is_refused(tmp_path: Path, source: dict[str, Any], complaint: str) -> None:
    write(tmp_path, [RESPONSE], QA, source)
    assert refused(tmp_path) == f"source_info.jsonl, line 2: {complaint}"


def test_offsets_of_a_browser_are_converted_by_the_words_of_the_label(tmp_path: Path) -> None:
    label = {"start": 3, "end": 10, "text": "9 euros", "label_type": "Evident Conflict"}
    (reply,) = load(tmp_path, RESPONSE | {"response": "👩 9 euros", "labels": [label]})
    assert reply.spans is not None
    assert [(span.start, span.end) for span in reply.spans] == [(2, 9)]


@pytest.mark.parametrize("labels", [[], "[]"])
def test_a_response_without_labels_is_not_hallucinated(tmp_path: Path, labels: Any) -> None:
    (reply,) = load(tmp_path, RESPONSE | {"id": 7, "labels": labels, "temperature": None})
    assert (reply.id, reply.label, reply.spans, reply.meta["temperature"]) == ("7", False, (), None)

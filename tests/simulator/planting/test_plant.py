"""Planted errors: exact places, clean twins, no truth among them, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario
from hallulab.scenarios.text.edits import collect_sentences
from hallulab.scenarios.text.spans import normalize_text, split_sentences
from hallulab.simulator.planting.kinds import KINDS, PlantedError
from hallulab.simulator.planting.material import (
    Clean,
    build_grounded_streams,
    build_sentence_bank,
    generate_clean_replies,
    load_material,
)
from hallulab.simulator.planting.plant import is_sound, plant
from tests.builders import EVIDENCE, labelled

FEE = "A complaint costs 200 rupees at the office."


@cache
def pack(name: str) -> tuple[Document, ...]:
    return load_scenario(name).documents


def planted(name: str, count: int, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> list[LabelledReply]:
    documents = pack(name)
    streams = build_grounded_streams(documents, (0, 2), (1, 4), seed)
    return plant(streams, collect_sentences(documents), kinds, count, seed).replies


def test_every_kind_is_planted_into_the_replies_of_the_largest_pack() -> None:
    replies = planted("consumer-grievance-india", 42, 0)
    assert Counter(reply.meta["kind"] for reply in replies if reply.label) == dict.fromkeys(KINDS, 3)


ENGLISH = [name for name in list_built_in_packs() if load_scenario(name).language is None]
"""Rules plant errors into English."""


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(ENGLISH), st.integers(0, 10**6))
def test_an_error_differs_from_its_twin_at_its_place_only(name: str, seed: int) -> None:
    replies = planted(name, 14, seed)
    for wrong, clean in zip(replies[::2], replies[1::2], strict=True):
        assert (wrong.meta["twin"], clean.meta["twin"]) == (clean.id, wrong.id)
        assert (wrong.question, wrong.history, wrong.passages, wrong.group) == (
            clean.question,
            clean.history,
            clean.passages,
            clean.group,
        )
        assert (wrong.label, clean.label, clean.spans) == (True, False, ())
        [span] = wrong.spans or ()
        assert span.label == wrong.meta["kind"]
        before, after = wrong.reply[: span.start], wrong.reply[span.end :]
        assert clean.reply.startswith(before.rstrip())
        assert clean.reply.endswith(after.lstrip())
        assert wrong.reply[span.start : span.end].strip() == wrong.reply[span.start : span.end] != ""


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(ENGLISH), st.integers(0, 10**6))
def test_twins_say_what_the_evidence_says(name: str, seed: int) -> None:
    for clean in planted(name, 14, seed)[1::2]:
        evidence = normalize_text("\n".join(passage.text for passage in clean.passages))
        said = [region.of(clean.reply) for region in split_sentences(clean.reply)]
        assert [
            one for one in said if normalize_text(one) not in evidence and one not in ("Yes.", "No.")
        ] == []


def test_turns_and_passages_are_as_asked() -> None:
    replies = planted("consumer-grievance-india", 8, 1, ("number",))
    found = Counter((reply.meta["turn"], reply.meta["context"]) for reply in replies if reply.label)
    assert found == dict.fromkeys([(0, 1), (0, 4), (2, 1), (2, 4)], 2)
    assert all(len(reply.history) == 2 * int(reply.meta["turn"] or 0) for reply in replies)
    assert all(len(reply.passages) == reply.meta["context"] for reply in replies)


def test_equal_seeds_give_equal_errors_and_others_others() -> None:
    one, same, other = (planted("pregnancy-medication", 14, seed) for seed in (3, 3, 4))
    assert one == same != other


def test_a_contradiction_is_of_what_the_chatbot_said_before() -> None:
    for wrong in planted("consumer-grievance-india", 5, 0, ("contradiction",))[::2]:
        clean = wrong.history[-1]
        assert clean.role == "assistant"
        assert wrong.reply not in clean.text
        assert "confirm" in wrong.question


def clean(evidence: str) -> Clean:
    passage = EVIDENCE.model_copy(update={"text": evidence})
    return Clean("x", "?", (), (passage,), FEE, "g")


@pytest.mark.parametrize(
    ("kind", "reply", "start", "end", "sound"),
    [
        ("number", "A complaint costs 400 rupees at the office.", 18, 21, True),
        ("number", FEE, 18, 21, False),
        ("number", "A complaint costs 500 rupees at the office.", 18, 21, False),
        ("condition", "A complaint  costs 200 rupees.", 12, 12, False),
        ("negation", "A complaint costs 500 rupees at the gate.", 18, 21, False),
    ],
    ids=["false", "same", "value-stands-elsewhere", "two-blanks", "stands-in-the-evidence"],
)
def test_only_sound_errors_pass(kind: str, reply: str, start: int, end: int, sound: bool) -> None:
    evidence = f"{FEE} A complaint costs 500 rupees at the gate."
    assert is_sound(kind, PlantedError(clean(evidence), reply, start, end)) is sound


def test_labelled_replies_that_are_clean_are_planted_into_and_others_not() -> None:
    passages = (EVIDENCE.model_copy(update={"text": FEE}),)
    replies = [labelled(FEE, False, id="clean", passages=passages), labelled(FEE, True, id="wrong")]
    done = plant([generate_clean_replies(replies, 0)], build_sentence_bank(replies), ("number", "date"), 4, 0)
    assert {reply.meta["source"] for reply in done.replies} == {"clean"}
    assert {reply.meta["kind"] for reply in done.replies} == {"number"}
    assert done.lacking == {"date": 2}


def test_no_english_errors_are_planted_into_texts_in_other_languages(tmp_path: Path) -> None:
    german = "Der Antrag muss innerhalb von 14 Tagen nach dem Kauf gestellt werden."
    (tmp_path / "a.md").write_text(f"# Gebühren\n\n{german}\n", encoding="utf-8")
    streams, _ = load_material(str(tmp_path), (0,), (1,), 0)
    with pytest.raises(UsageError, match="the documents have no whole sentence in English"):
        next(streams[0])
    with pytest.raises(UsageError, match="no reply in English is clean"):
        next(generate_clean_replies([labelled(german)], 0))

"""The rules for replies that decline, on labelled replies; docs/studies/declining.md has the numbers."""

from __future__ import annotations

import pytest

from benchmarks.declining import Agreement, ReadReply, compare_replies, compare_sentences, main, read_labels
from tests.places import ROOT

REPLIES = read_labels(ROOT / "tests" / "recordings" / "labelled" / "declining.jsonl.gz")


def make_reply(reply: str, kind: str, *declining: str) -> ReadReply:
    fields = {"id": "a", "source": "a", "group": "a", "kind": kind, "declining": declining, "reply": reply}
    return ReadReply.model_validate(fields)


def test_replies_and_sentences_are_compared_with_their_labels() -> None:
    replies = [
        make_reply("I do not know.", "declines", "I do not know."),
        make_reply("I do not know.", "answers"),
        make_reply("It is free. Who could say?", "declines", "Who could say?"),
        make_reply("It is free.", "answers"),
    ]
    assert compare_replies(replies) == Agreement(found=1, wrong=1, missed=1)
    assert compare_sentences(replies) == Agreement(found=1, wrong=1, missed=1)


def test_precision_and_recall_have_exact_intervals() -> None:
    assert Agreement(found=1, wrong=0, missed=1).render() == ("100.0% [2.5%, 100.0%]", "50.0% [1.3%, 98.7%]")


def test_every_sentence_that_is_labelled_is_one_of_its_reply() -> None:
    assert [
        one.id for one in REPLIES if not all(said in " ".join(one.reply.split()) for said in one.declining)
    ] == []


def test_the_rules_hold_on_the_sources_that_they_were_not_written_on() -> None:
    held_out = [one for one in REPLIES if one.held_out]
    assert (len(REPLIES), len(held_out)) == (1153, 506)
    assert compare_replies(held_out) == Agreement(found=45, wrong=0, missed=1)
    assert compare_sentences(held_out) == Agreement(found=80, wrong=1, missed=8)
    assert compare_replies(held_out, "asks back") == Agreement(found=26, wrong=0, missed=2)


def test_the_docs_have_the_table_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([]) == 0
    assert capsys.readouterr().out in (ROOT / "docs" / "studies" / "declining.md").read_text(encoding="utf-8")

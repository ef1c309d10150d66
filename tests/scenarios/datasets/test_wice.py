from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from tests.kit.refusals import refusal

CLAIM = {
    "label": "partially_supported",
    "supporting_sentences": [[0], [1]],
    "claim": "The ex-king left in 1849 (by sea).",
    "evidence": ["The king left.", "He took a ship."],
    "meta": {"id": "dev1-2", "claim_title": "A king", "claim_section": "Exile.", "claim_context": ""},
}
TOKENS = CLAIM | {
    "claim_tokens": ["The", "ex", "-", "king", "left", "in", "1849", "(", "by", "sea", ")", "."],
    "non_supported_spans": [False, True, True, False, False, False, True, False, True, True, False, False],
}


FILES = {"tokens": "non_supported_tokens", "tokens-train": "non_supported_tokens_train"}


def load(folder: Path, part: str | None, *lines: dict[str, Any]) -> list[LabelledReply]:
    path = folder / f"{FILES.get(part or '', 'claims')}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(load_labelled("wice", folder, part))


def test_a_claim_becomes_a_labelled_reply(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, None, CLAIM)
    assert (reply.id, reply.dataset, reply.task) == ("dev1-2", "wice", "claim")
    assert reply.reply == "The ex-king left in 1849 (by sea)."
    assert [passage.text for passage in reply.passages] == ["The king left.\n\nHe took a ship."]
    assert reply.spans is None
    assert reply.meta == {"source": "claims", "support": "partially_supported", "article": "A king"}


@pytest.mark.parametrize(
    ("label", "hallucinated"), [("supported", False), ("partially_supported", True), ("not_supported", True)]
)
def test_what_is_not_fully_supported_is_hallucinated(tmp_path: Path, label: str, hallucinated: bool) -> None:
    (reply,) = load(tmp_path, "claims", CLAIM | {"label": label})
    assert reply.label is hallucinated


def test_marked_tokens_become_spans_of_the_claim(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, "tokens", TOKENS)
    spans = reply.spans or ()
    assert [reply.reply[span.start : span.end] for span in spans] == ["ex-", "1849", "by sea"]
    assert spans[0] == GoldSpan(start=4, end=7, label="not supported")
    assert (reply.label, reply.meta["source"]) == (True, "tokens")


def test_tokens_of_white_space_are_no_span(tmp_path: Path) -> None:
    spaced = TOKENS | {
        "claim": "5\xa0m off",
        "claim_tokens": ["5", "\xa0", "m", "off"],
        "non_supported_spans": [False, True, False, True],
    }
    (reply,) = load(tmp_path, "tokens-train", spaced)
    assert reply.spans == (GoldSpan(start=4, end=7, label="not supported"),)


def test_a_claim_without_a_marked_token_has_no_known_place(tmp_path: Path) -> None:
    (reply,) = load(tmp_path, "tokens", TOKENS | {"non_supported_spans": [False] * 12})
    assert (reply.label, reply.spans) == (True, None)


def test_a_long_page_is_cut_between_its_sentences(tmp_path: Path) -> None:
    page = [f"{'word ' * 49}end{number}." for number in range(4)]
    (reply,) = load(tmp_path, None, CLAIM | {"evidence": page})
    assert [passage.text for passage in reply.passages] == ["\n\n".join(page[:2]), "\n\n".join(page[2:])]


def test_claims_about_the_same_page_are_a_group(tmp_path: Path) -> None:
    meta = {"claim_title": "", "claim_section": "", "claim_context": ""}
    other = CLAIM | {"evidence": ["Another page."], "meta": meta | {"id": "3"}}
    first, second, third = load(tmp_path, None, CLAIM, CLAIM | {"meta": meta | {"id": "2"}}, other)
    assert first.group == second.group != third.group


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    assert refusal(load, tmp_path, "test", CLAIM) == (
        "--source test: wice has no such part. "
        "Give one of: claims, claims-train, claims-test, tokens, tokens-train, tokens-test."
    )


@pytest.mark.parametrize("root", ["", "data"])
@pytest.mark.parametrize("split", ["dev", "train", "test"])
@pytest.mark.parametrize(
    ("kind", "folder", "line"),
    [("claims", "entailment_retrieval/claim", CLAIM), ("tokens", "non_supported_tokens", TOKENS)],
)
def test_the_official_files_are_read(
    tmp_path: Path, root: str, split: str, kind: str, folder: str, line: dict[str, Any]
) -> None:
    path = tmp_path / root / folder / f"{split}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(line))
    part = kind if split == "dev" else f"{kind}-{split}"
    (reply,) = load_labelled("wice", tmp_path, part)
    assert (reply.id, reply.meta["source"]) == ("dev1-2", part)
    if part in ("claims", *FILES):
        (tmp_path / "renamed").mkdir()
        assert load(tmp_path / "renamed", part, line) == [reply]


def test_a_part_needs_its_own_file(tmp_path: Path) -> None:
    load(tmp_path, None, CLAIM)
    assert refusal(load_labelled, "wice", tmp_path, "tokens") == (
        "non_supported_tokens.jsonl: there is no such file. Give the folder that holds "
        "non_supported_tokens.jsonl or data/non_supported_tokens/dev.jsonl or "
        "non_supported_tokens/dev.jsonl with --data DIR."
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"non_supported_spans": [True]}, "there are 12 claim_tokens and 1 non_supported_spans"),
        ({"claim": "The king left."}, "token 1 ('ex') does not follow in the claim after 'The'"),
        ({"claim": "The old ex-king."}, "token 1 ('ex') does not follow in the claim after 'The'"),
    ],
)
def test_tokens_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    assert refusal(load, tmp_path, "tokens", TOKENS, TOKENS | change) == (
        f"non_supported_tokens.jsonl, line 2: {complaint}. Correct it; see docs/labelled-data.md."
    )


def test_an_unknown_label_is_refused(tmp_path: Path) -> None:
    assert refusal(load, tmp_path, None, CLAIM | {"label": "unclear"}).startswith(
        "claims.jsonl, line 1: label: input should be 'supported', 'partially_supported' or 'not_supported'."
    )

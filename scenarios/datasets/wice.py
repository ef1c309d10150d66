"""WiCE (Kamoi et al., "WiCE: Real-World Entailment for Claims in Wikipedia").

Claims of Wikipedia articles, each judged against the web page that the article cites for it. In half of the
files, annotators marked the unsupported tokens of partially supported claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Literal, Self

from pydantic import Field, model_validator

from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    cut_into_passages,
    make_repeated_id_error,
)
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.labelled import GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Frozen


def _list_official_paths(name: str) -> tuple[str, str]:
    """Return the file's paths in the official release and in its folder `data`."""
    return f"data/{name}.jsonl", f"{name}.jsonl"


FILES = {
    "claims": ("claims.jsonl", *_list_official_paths("entailment_retrieval/claim/dev")),
    "claims-train": _list_official_paths("entailment_retrieval/claim/train"),
    "claims-test": _list_official_paths("entailment_retrieval/claim/test"),
    "tokens": ("non_supported_tokens.jsonl", *_list_official_paths("non_supported_tokens/dev")),
    "tokens-train": ("non_supported_tokens_train.jsonl", *_list_official_paths("non_supported_tokens/train")),
    "tokens-test": _list_official_paths("non_supported_tokens/test"),
}
"""Part of the data set → possible names of its file."""

_SPAN_LABEL = "not supported"


class _ClaimOrigin(Frozen):
    """The origin of a claim."""

    id: str = Field(min_length=1)
    claim_title: str
    claim_section: str
    claim_context: str
    """The text before the claim."""


class WiceClaim(Frozen):
    """A line of a file of claims."""

    label: Literal["supported", "partially_supported", "not_supported"]
    supporting_sentences: tuple[tuple[int, ...], ...]
    """Alternative sets of supporting sentences of the page."""
    claim: str = Field(min_length=1)
    evidence: tuple[str, ...] = Field(min_length=1)
    meta: _ClaimOrigin


class _TokenClaim(WiceClaim):
    """A line of a file of tokens."""

    claim_tokens: tuple[str, ...]
    non_supported_spans: tuple[bool, ...]
    """For each token, whether it lacks support."""

    @model_validator(mode="after")
    def _tokens_fit(self) -> Self:
        if len(self.claim_tokens) != len(self.non_supported_spans):
            raise ValueError(
                f"there are {len(self.claim_tokens)} claim_tokens and "
                f"{len(self.non_supported_spans)} non_supported_spans"
            )
        _find_offsets(self.claim, self.claim_tokens)
        return self


def load_wice(request: LoadRequest) -> LabelledData:
    """Load the claims of WiCE. A claim that is not, or only partially, supported is hallucinated.

    The evidence is the page in pieces of about 120 words, 159 at most; sentences of up to 120 words stay
    whole. Claims about the same page form a group. Runs of marked tokens, with the white space between them,
    are the spans.

    Args:
        request: its folder holds the file of the part; its source is a name of `FILES`; None: `claims`.

    Raises:
        UsageError: the request or a line of the file is wrong.
    """
    part = request.part(tuple(FILES)) or "claims"
    path = request.file(*FILES[part])
    model = WiceClaim if part.startswith("claims") else _TokenClaim
    replies: dict[str, LabelledReply] = {}
    for number, claim in read_records(path, model, SCHEMA):
        if claim.meta.id in replies:
            raise make_repeated_id_error(path, number, claim.meta.id)
        replies[claim.meta.id] = _label_claim(claim, part)
    return LabelledData(tuple(replies.values()))


def _label_claim(claim: WiceClaim, part: str) -> LabelledReply:
    group = digest(claim.evidence)[:16]
    hallucinated = claim.label != "supported"
    spans = tuple(_find_spans(claim)) if isinstance(claim, _TokenClaim) else None
    return LabelledReply(
        id=claim.meta.id,
        dataset="wice",
        task="claim",
        passages=cut_into_passages("\n\n".join(claim.evidence), group),
        reply=claim.claim,
        label=hallucinated,
        spans=spans or (None if hallucinated else spans),
        group=group,
        meta={"source": part, "support": claim.label, "article": claim.meta.claim_title},
    )


def _find_spans(claim: _TokenClaim) -> Iterator[GoldSpan]:
    offsets = _find_offsets(claim.claim, claim.claim_tokens)
    for marked, run in groupby(
        zip(claim.non_supported_spans, claim.claim_tokens, offsets, strict=True), key=lambda token: token[0]
    ):
        # A few tokens of the data are white space.
        words = [place for _, token, place in run if token.strip()]
        if marked and words:
            yield GoldSpan(start=words[0][0], end=words[-1][1], label=_SPAN_LABEL)


def _find_offsets(text: str, tokens: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return [start, end) of each token in the text.

    Raises:
        ValueError: a token is not in the text, or there is more than white space before it.
    """
    offsets = []
    at = 0
    for number, token in enumerate(tokens):
        start = text.find(token, at)
        if start < 0 or text[at:start].strip():
            raise ValueError(f"token {number} ({token!r}) does not follow in the claim after {text[:at]!r}")
        at = start + len(token)
        offsets.append((start, at))
    return offsets


INFO = DatasetInfo(
    load=load_wice,
    levels=("reply", "span"),
    licence="ODC-By-1.0, texts CC-BY-SA",
    url="https://github.com/ryokamoi/wice",
)

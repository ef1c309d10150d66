"""RefChecker: knowledge triplets of the reply, each checked against the passages.

Hu et al. 2024. The package `refchecker` extracts the triplets and labels them Entailment, Neutral or
Contradiction; prompts for a language model go to the served model through our process. The package parses a
model's triplets with `eval`, which would run whatever a model writes: that function is replaced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

EXTRACTION_TOKENS, CHECK_TOKENS = 500, 10
"""The package's own limits of the served model's answers."""
NLI_TOKENS = 512
"""Tokens of a passage and a claim, beyond which the package's NLI checker cuts."""


class Worker:
    """Configuration: `weights` (an NLI model's folder or hub name; None: the served model checks)."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        from refchecker import LLMChecker, LLMExtractor

        class Extractor(LLMExtractor):  # type: ignore[misc]  # the package has no types
            def _parse_triplets(self, pattern: str, text: str, triple_length: int = 3) -> list[list[str]]:
                return read_triplets(pattern, text)

        self._ask = ask
        self._extractor: Any = Extractor(claim_format="triplet", model="served")
        self._weights = configuration["weights"]
        if self._weights:
            import torch
            from refchecker.checker import NLIChecker
            from refchecker.checker.nli_checker import LABELS

            device = "cuda" if torch.cuda.is_available() else "cpu"
            self._checker: Any = NLIChecker(model=self._weights, device=device)
            require_labels(self._checker.model.config.id2label, LABELS)
        else:
            self._checker = LLMChecker(model="served")

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """See docs/studies/peers.md. Units are triplets, which have no place in the reply.

        The score is the share of triplets that are not entailed (the package's soft aggregation).
        """
        passages = [passage["text"] for passage in request["passages"]]
        question = request["question"] or None
        [extracted] = self._extractor.extract(
            batch_responses=[request["reply"]["text"]],
            batch_questions=[question],
            custom_llm_api_func=self._answerer("extract", EXTRACTION_TOKENS),
        )
        claims = [claim.content for claim in extracted.claims]
        if not claims:
            return {"abstained": "no triplet was found in the reply"}
        # The NLI model reads a claim as a sentence, the prompts show it as a triplet.
        [labels] = self._checker.check(
            batch_claims=[[" ".join(claim) for claim in claims] if self._weights else claims],
            batch_references=[passages],
            batch_questions=[question],
            merge_psg=True,
            is_joint=False,
            custom_llm_api_func=self._answerer("check", CHECK_TOKENS),
        )
        return make_verdict(claims, labels, truncated=self._is_cut(passages, claims))

    def _answerer(self, step: str, max_tokens: int) -> Callable[[Sequence[str]], list[str]]:
        def answer(prompts: Sequence[str]) -> list[str]:
            answers = self._ask(
                [{"step": step, "prompt": prompt, "max_tokens": max_tokens} for prompt in prompts]
            )
            # The package raises a text on an empty one, which is a TypeError that says nothing.
            if step == "check" and not all(text.strip() for text in answers):
                raise ValueError("the served model's answer is empty where it was to check a triplet")
            return answers

        return answer

    def _is_cut(self, passages: Sequence[str], claims: Sequence[Sequence[str]]) -> bool:
        if not self._weights:
            return False
        return any(
            len(self._checker.tokenizer(passage, " ".join(claim))["input_ids"]) > NLI_TOKENS
            for passage in passages
            for claim in claims
        )


def require_labels(labels: Mapping[int, str], order: Sequence[str]) -> None:
    """Raise ValueError where a model's classes are not those that the package takes them to be.

    The package never looks at a model's own labels: with another order, it reads contradiction as entailment.

    Args:
        order: what the package calls the classes, from class 0 on.
    """
    named = [labels[number] for number in sorted(labels)]
    if [label.lower() for label in named] != [label.lower() for label in order]:
        raise ValueError(
            f"the NLI model's labels are {', '.join(named)}; RefChecker reads them as {', '.join(order)}"
        )


def read_triplets(pattern: str, text: str) -> list[list[str]]:
    """Return the triplets of non-empty texts that `pattern` finds, read as literals: nothing is evaluated."""
    found = []
    for match in re.findall(pattern, text):
        try:
            value = ast.literal_eval(match)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            value = match.removeprefix("(").removesuffix(")").split(", ")
        if len(value) == 3 and all(isinstance(part, str) and part for part in value):
            found.append(list(value))
    return found


def make_verdict(
    claims: Sequence[Sequence[str]], labels: Sequence[str], *, truncated: bool
) -> dict[str, Any]:
    """Return the answer for labelled triplets: what is not entailed is flagged, contradicted or not."""
    if len(claims) != len(labels):
        raise ValueError(f"{len(labels)} labels for {len(claims)} triplets")
    units = [
        {
            "kind": "claim",
            "text": " | ".join(claim),
            "score": float(label != "Entailment"),
            "details": {"label": label},
        }
        for claim, label in zip(claims, labels, strict=True)
    ]
    spans = [{"text": unit["text"], "score": 1.0} for unit in units if unit["score"] == 1.0]
    return {"score": len(spans) / len(units), "spans": spans, "units": units, "truncated": truncated}

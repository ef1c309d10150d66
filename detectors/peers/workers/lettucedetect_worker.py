"""LettuceDetect: a token classifier marks the words of the reply that the passages do not support.

Runs with the package `lettucedetect` (prompt, cutting of long evidence and maximum over its parts are its
own). The reply's score is that of its worst token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

PROMPT_TOKENS = 100
"""Room for the package's instructions in the estimate of whether a passage was cut."""


class Worker:
    """Configuration: `weights` (folder or hub name) and `threshold` (probability of a flagged token)."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        from lettucedetect.models.inference import HallucinationDetector

        detector = HallucinationDetector(method="transformer", model_path=configuration["weights"])
        self._detector: Any = detector.detector
        self._threshold: float = configuration["threshold"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """See docs/studies/peers.md. Units are words (runs without white space)."""
        reply: str = request["reply"]["text"]
        passages = [passage["text"] for passage in request["passages"]]
        question = request["question"] or None
        tokenizer = self._detector.tokenizer
        offsets = tokenizer(reply, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        tokens = self._detector.predict(passages, reply, question, output_format="tokens")
        # The package's list ends with the separator after the reply.
        if len(tokens) != len(offsets) + 1:
            raise ValueError(f"{len(tokens)} judged tokens for {len(offsets)} tokens of the reply")
        scored = [(start, end, token["prob"]) for (start, end), token in zip(offsets, tokens, strict=False)]
        longest = max(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in passages)
        asked = len(tokenizer(request["question"], add_special_tokens=False)["input_ids"])
        room = self._detector.max_length - len(offsets) - asked - PROMPT_TOKENS
        return {
            "score": max((score for _, _, score in scored), default=0.0),
            "spans": find_spans(reply, scored, self._threshold),
            "units": make_word_units(reply, scored),
            "truncated": longest > room,
        }


Scored = Sequence[tuple[int, int, float]]
"""Start, end and probability of hallucination of each token."""


def make_word_units(reply: str, tokens: Scored) -> list[dict[str, Any]]:
    """Return each word with the score of its worst token."""
    units = []
    for word in re.finditer(r"\S+", reply):
        scores = [score for start, end, score in tokens if start < word.end() and word.start() < end]
        if scores:
            units.append({"kind": "word", "start": word.start(), "end": word.end(), "score": max(scores)})
    return units


def find_spans(reply: str, tokens: Scored, threshold: float) -> list[dict[str, Any]]:
    """Runs of tokens that reach the threshold, without white space at their ends."""
    runs: list[list[tuple[int, int, float]]] = [[]]
    for token in tokens:
        if token[2] >= threshold and token[0] < token[1]:
            runs[-1].append(token)
        elif token[0] < token[1]:
            runs.append([])
    found = []
    for run in filter(None, runs):
        text = reply[run[0][0] : run[-1][1]]
        start = run[0][0] + len(text) - len(text.lstrip())
        if text.strip():
            worst = max(score for _, _, score in run)
            found.append({"start": start, "end": start + len(text.strip()), "score": worst})
    return found

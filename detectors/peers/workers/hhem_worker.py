"""HHEM-2.1-Open: is the reply consistent with the passages?

The published model is a T5 token classifier of which the first position counts (class 1: consistent), with a
fixed prompt. Its own class comes as code beside the weights; that code is not run, the same is done here
with transformers' T5. LogicGraph reads the model by this module, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {premise}\n\nHypothesis: {hypothesis}"
)
"""Prompt on which the model was trained: it understands no other."""
PREFIX = "t5."
CONSISTENT = 1
"""The class whose probability is the model's score."""
FOUNDATION = "google/flan-t5-base"
"""Whose tokenizer and shape the published model has; its configuration says so, too."""


class Misfit(ValueError):
    """The weights are of another shape than the foundation."""


class Worker:
    """Configuration: `weights` and `foundation` (folders or hub names), `threshold`, `sentences`."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        import torch

        self._torch: Any = torch
        self._tokenizer, self._model = load_hhem(configuration["weights"], configuration["foundation"])
        self._threshold: float = configuration["threshold"]
        self._sentences: bool = configuration["sentences"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """See docs/studies/peers.md. Units and spans are sentences, where these are asked for."""
        reply = request["reply"]
        premise = "\n".join(passage["text"] for passage in request["passages"])
        score = self._inconsistency(premise, reply["text"])
        if not self._sentences:
            return {"score": score, "spans": None, "units": []}
        units = [
            {
                "kind": "sentence",
                "start": start,
                "end": end,
                "score": self._inconsistency(premise, reply["text"][start:end]),
            }
            for start, end in reply["sentences"]
        ]
        flagged = [
            {key: unit[key] for key in ("start", "end", "score")}
            for unit in units
            if unit["score"] >= self._threshold
        ]
        return {"score": score, "spans": flagged, "units": units}

    def _inconsistency(self, premise: str, hypothesis: str) -> float:
        text = HHEM_PROMPT.format(premise=premise, hypothesis=hypothesis)
        inputs = self._tokenizer(text, return_tensors="pt").to(self._model.device)
        with self._torch.no_grad():
            [consistent] = compute_consistencies(
                self._model(inputs["input_ids"], inputs["attention_mask"]).logits
            )
        return 1.0 - consistent


def load_hhem(weights: str, foundation: str | None) -> tuple[Any, Any]:
    """Tokenizer and model, on the GPU where there is one.

    Args:
        weights: folder or hub name of the published model.
        foundation: folder or hub name of the T5 whose tokenizer and shape it has. None: see
            `read_foundation`.

    Raises:
        Misfit: the weights are not of that shape.
    """
    import torch
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification
    from transformers.utils.hub import cached_file

    if foundation is None:
        published = json.loads(Path(str(cached_file(weights, "config.json"))).read_text(encoding="utf-8"))
        foundation = read_foundation(published)
    tokenizer: Any = AutoTokenizer.from_pretrained(foundation)
    model: Any = T5ForTokenClassification(AutoConfig.from_pretrained(foundation, num_labels=2))
    state = load_file(str(cached_file(weights, "model.safetensors")))
    named = {name.removeprefix(PREFIX): tensor for name, tensor in state.items()}
    result = model.load_state_dict(named, strict=False)
    # The embedding is shared, so it is saved once.
    lacking = [name for name in result.missing_keys if not name.endswith("embed_tokens.weight")]
    if lacking or result.unexpected_keys:
        wrong = ", ".join([*lacking, *result.unexpected_keys][:3])
        raise Misfit(f"the weights do not fit the foundation ({wrong})")
    return tokenizer, model.eval().to("cuda" if torch.cuda.is_available() else "cpu")


def read_foundation(published: dict[str, Any]) -> str:
    """Return the T5 that the configuration beside the weights names."""
    return published.get("foundation") or FOUNDATION


def compute_consistencies(logits: Any) -> list[float]:
    """Return the probability of consistent for each text of a batch; logits are (texts, tokens, classes)."""
    read: list[float] = logits[:, 0].softmax(dim=-1)[:, CONSISTENT].tolist()
    return read

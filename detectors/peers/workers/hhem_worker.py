"""HHEM-2.1-Open: is the reply consistent with the passages?

The published model is a T5 token classifier of which the first position counts (class 1: consistent), with a
fixed prompt. Its own class comes as code beside the weights; that code is not run, the same is done here
with transformers' T5.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\n"
    "Premise: {premise}\n\nHypothesis: {hypothesis}"
)
"""What the model was trained on: it understands no other."""
PREFIX = "t5."
"""What the names of the weights begin with."""
CONSISTENT = 1
"""The class whose probability is the model's score."""


class Peer:
    """Configuration: `weights` and `foundation` (folders or hub names), `threshold`, `sentences`."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        import torch
        from safetensors.torch import load_file
        from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification
        from transformers.utils.hub import cached_file

        weights = configuration["weights"]
        published = json.loads(Path(str(cached_file(weights, "config.json"))).read_text(encoding="utf-8"))
        foundation = configuration["foundation"] or published["foundation"]
        self._torch: Any = torch
        self._tokenizer: Any = AutoTokenizer.from_pretrained(foundation)
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        model: Any = T5ForTokenClassification(AutoConfig.from_pretrained(foundation, num_labels=2))
        state = load_file(str(cached_file(weights, "model.safetensors")))
        named = {name.removeprefix(PREFIX): tensor for name, tensor in state.items()}
        result = model.load_state_dict(named, strict=False)
        # The embedding is shared, so it is saved once.
        lacking = [name for name in result.missing_keys if not name.endswith("embed_tokens.weight")]
        if lacking or result.unexpected_keys:
            wrong = ", ".join([*lacking, *result.unexpected_keys][:3])
            raise ValueError(f"the weights do not fit the foundation ({wrong})")
        self._model: Any = model.eval().to(self._device)
        self._threshold: float = configuration["threshold"]
        self._sentences: bool = configuration["sentences"]

    def judge(self, request: dict[str, Any]) -> dict[str, Any]:
        """See docs/peers.md. Units and spans are sentences, where these are asked for."""
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
        text = PROMPT.format(premise=premise, hypothesis=hypothesis)
        inputs = self._tokenizer(text, return_tensors="pt").to(self._device)
        with self._torch.no_grad():
            logits = self._model(inputs["input_ids"], inputs["attention_mask"]).logits[0, 0]
        return 1.0 - float(self._torch.softmax(logits, dim=-1)[CONSISTENT])

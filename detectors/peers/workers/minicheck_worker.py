"""MiniCheck and FactCG: is each sentence of the reply supported by some part of the passages?

Tang, Laban and Durrett, EMNLP 2024: the document is cut into chunks at sentence ends, a sentence is supported
as well as by its best chunk. The paper leaves it open how sentences make a reply's score; here the worst one
counts, for one unsupported sentence makes a reply hallucinated.

FactCG (Lei et al., NAACL 2025) is a DeBERTa classifier that is asked so, too: other words around chunk and
sentence, longer chunks. Its authors cut at NLTK's sentences and count NLTK's tokens; here sentences are ours,
and tokens words.

The Flan-T5 model reads the first decoded token, RoBERTa and DeBERTa are classifiers. The authors' package is
not on the package index; this needs only transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

T5_LABELS = (3, 209)
"""Token ids of "unsupported" and "supported" in the T5 model's answer."""
T5_CHUNK_WORDS, CHUNK_TOKENS = 500, 400
"""Length of a chunk for the T5 model, in words, and for the others, in tokens."""
FACTCG_CHUNK_WORDS = 550
FACTCG_FORM = (
    '{chunk}\n\nChoose your answer: based on the paragraph above can we conclude that "{sentence}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)
"""Prompt on which FactCG was trained."""
LONGEST = {"roberta": 512}
"""Tokens of an input by kind of model, where it is not `LONGEST_ELSE`."""
LONGEST_ELSE = 2048


class Worker:
    """Configuration: `weights` (folder or hub name), `threshold`, and `peer`: `minicheck` or `factcg`."""

    def __init__(self, configuration: dict[str, Any], ask: Callable[..., list[str]]) -> None:
        import torch
        from transformers import (
            AutoConfig,
            AutoModelForSeq2SeqLM,
            AutoModelForSequenceClassification,
            AutoTokenizer,
        )

        weights = configuration["weights"]
        kind = AutoConfig.from_pretrained(weights).model_type
        self._is_t5 = kind == "t5"
        self._is_factcg = configuration["peer"] == "factcg"
        kept: Any = AutoModelForSeq2SeqLM if self._is_t5 else AutoModelForSequenceClassification
        self._torch: Any = torch
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(weights)
        self._model: Any = kept.from_pretrained(weights).eval().to(self._device)
        self._longest = LONGEST.get(kind, LONGEST_ELSE)
        self._threshold: float = configuration["threshold"]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """See docs/studies/peers.md. Units are sentences, spans those that are unsupported."""
        chunks = [
            chunk
            for passage in request["passages"]
            for chunk in split_chunks(passage["text"], passage["sentences"], self._chunk_size, self._length)
        ]
        reply = request["reply"]
        if not chunks or not reply["sentences"]:
            return {"abstained": "the reply or the evidence has no sentences"}
        units, cut = [], False
        for start, end in reply["sentences"]:
            support = 0.0
            for chunk in chunks:
                share, too_long = self._support(chunk, reply["text"][start:end])
                support, cut = max(support, share), cut or too_long
            units.append({"kind": "sentence", "start": start, "end": end, "score": 1.0 - support})
        flagged = [
            {key: unit[key] for key in ("start", "end", "score")}
            for unit in units
            if unit["score"] >= self._threshold
        ]
        worst = max(unit["score"] for unit in units)
        return {"score": worst, "spans": flagged, "units": units, "truncated": cut}

    @property
    def _chunk_size(self) -> int:
        if self._is_factcg:
            return FACTCG_CHUNK_WORDS
        return T5_CHUNK_WORDS if self._is_t5 else CHUNK_TOKENS

    def _length(self, text: str) -> int:
        if self._is_t5 or self._is_factcg:
            return len(text.split())
        return len(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _support(self, chunk: str, sentence: str) -> tuple[float, bool]:
        """Probability that the chunk supports the sentence, and whether they were too long for the model."""
        if self._is_factcg:
            text = FACTCG_FORM.format(chunk=chunk, sentence=sentence)
        else:
            text = ("predict: " if self._is_t5 else "") + chunk + self._tokenizer.eos_token + sentence
        too_long = len(self._tokenizer(text)["input_ids"]) > self._longest
        inputs = self._tokenizer(text, max_length=self._longest, truncation=True, return_tensors="pt").to(
            self._device
        )
        tensors = (inputs["input_ids"], inputs["attention_mask"])
        with self._torch.no_grad():
            if self._is_t5:
                first = self._torch.zeros((1, 1), dtype=self._torch.long, device=self._device)
                logits = self._model(*tensors, decoder_input_ids=first).logits[0, 0, list(T5_LABELS)]
            else:
                logits = self._model(*tensors).logits[0]
        return float(self._torch.softmax(logits, dim=-1)[1]), too_long


def split_chunks(
    text: str, sentences: Sequence[Sequence[int]], size: int, length: Callable[[str], int]
) -> Iterator[str]:
    """Runs of sentences with a length of up to `size`; a longer sentence is a chunk of its own."""
    start, end, filled = 0, 0, 0
    for first, last in sentences:
        added = length(text[first:last])
        if filled and filled + added > size:
            yield text[start:end]
            filled = 0
        start = start if filled else first
        end, filled = last, filled + added
    if filled:
        yield text[start:end]

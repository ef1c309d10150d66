"""The paper's two models by transformers: HHEM-2.1-Open and mxbai-rerank-base-v2 (section 4.2).

Neither comes with this tool. They are loaded when first used, from a folder with the weights or a model hub
within reach. No code beside the weights is executed.
"""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallulab.agents.models.prompt import Prompt
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.embeddings import without_progress_bars
from hallulab.detectors.logic_graph.scorers import Pair, word_hypothesis
from hallulab.detectors.peers.workers.hhem_worker import (
    HHEM_PROMPT,
    Misfit,
    compute_consistencies,
    load_hhem,
    read_foundation,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.extras import require_extra
from hallulab.scenarios.files.data_files import require_files_only

if TYPE_CHECKING:
    import torch

RERANK_PROMPT = (
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
    "<|im_start|>user\nquery: {hypothesis}\ndocument: {premise}\n"
    "You are a search relevance expert who evaluates how well documents match search queries. For each "
    "query-document pair, carefully analyze the semantic relationship between them, then provide your binary "
    "relevance judgment (0 for not relevant, 1 for relevant).\nRelevance:<|im_end|>\n<|im_start|>assistant\n"
)
"""The prompt that mxbai-rerank-base-v2 was trained with."""

_BATCH = 8
"""Most pairs computed together."""


class _WeightsScorer(ABC):
    """Fills pairs into a prompt and reads the logits of a model with its tokenizer.

    Args:
        prompt: with `{premise}` and `{hypothesis}`.
        load: loads tokenizer and model; called once, when a thread first uses them.
        options: how the model is called, besides its inputs.
    """

    prompts: tuple[Prompt, ...] = ()

    def __init__(self, prompt: str, load: Callable[[], tuple[Any, Any]], **options: Any) -> None:
        self._prompt = prompt
        self._load = load
        self._options = options
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    async def score(self, session: Session, pairs: Sequence[Pair]) -> list[float]:
        """See `Scorer.score`."""
        return await asyncio.to_thread(self._compute, pairs)

    def _compute(self, pairs: Sequence[Pair]) -> list[float]:
        import torch

        with self._lock:
            if self._loaded is None:
                with without_progress_bars():
                    self._loaded = self._load()
            tokenizer, model = self._loaded
        texts = _fill_pairs(self._prompt, tokenizer, pairs)
        found: list[float] = []
        with torch.inference_mode():
            for start in range(0, len(texts), _BATCH):
                inputs = tokenizer(texts[start : start + _BATCH], return_tensors="pt", padding=True)
                logits = model(**inputs.to(model.device), **self._options).logits
                found += self._read(tokenizer, logits)
        return found

    @abstractmethod
    def _read(self, tokenizer: Any, logits: torch.Tensor) -> list[float]:
        """Return a number for each pair of a batch."""


class HhemScorer(_WeightsScorer):
    """Entailment by HHEM-2.1-Open: the probability in [0, 1] that the claim is consistent with the evidence.

    Args:
        model: folder or hub name.

    Raises:
        UsageError: there is no such model within reach.
    """

    def __init__(self, model: str) -> None:
        foundation = read_foundation(require_model("hhem_model", model))
        require_model("hhem_model", foundation)
        super().__init__(HHEM_PROMPT, lambda: _load_hhem(model, foundation))

    def _read(self, tokenizer: Any, logits: torch.Tensor) -> list[float]:
        return compute_consistencies(logits)


class RerankScorer(_WeightsScorer):
    """Relevance by mxbai-rerank-base-v2: the logit of 1 (relevant) minus that of 0, any number.

    Args:
        model: folder or hub name.

    Raises:
        UsageError: there is no such model within reach.
    """

    def __init__(self, model: str) -> None:
        require_model("reranker_model", model)
        super().__init__(RERANK_PROMPT, lambda: _load_reranker(model), logits_to_keep=1)

    def _read(self, tokenizer: Any, logits: torch.Tensor) -> list[float]:
        relevant, irrelevant = tokenizer.convert_tokens_to_ids(["1", "0"])
        differences: list[float] = (logits[:, -1, relevant] - logits[:, -1, irrelevant]).tolist()
        return differences


def require_model(option: str, model: str) -> dict[str, Any]:
    """Return the configuration of a model, which shows that its weights are within reach.

    Args:
        option: the detector's option that names it.

    Raises:
        UsageError: there is no such folder, and no hub that has it, or the extra `local` is not installed.
    """
    require_extra("local", "torch", "transformers", use=f"detector logic-graph: `{option}`")
    from transformers import PretrainedConfig

    require_files_only(Path(model))
    try:
        configuration, _ = PretrainedConfig.get_config_dict(model)
    except Exception as error:  # whatever the hub and the file system raise
        raise _cannot_be_had(option, model) from error
    if not configuration:
        raise _cannot_be_had(option, model)
    return dict(configuration)


def _cannot_be_had(option: str, model: str) -> UsageError:
    return UsageError(
        f"detector logic-graph: the weights of {model} cannot be had: it is no folder with them, and no "
        f"model hub gives them. Name a folder in `{option}`, or leave entailment and relevance to the served "
        "model."
    )


def _load_hhem(model: str, foundation: str) -> tuple[Any, Any]:
    try:
        return load_hhem(model, foundation)
    except Misfit as error:
        raise UsageError(f"detector logic-graph: `hhem_model: {model}`: {error}.") from error
    except Exception as error:  # whatever the hub, the configuration and the weights raise
        raise _cannot_be_had("hhem_model", model) from error


def _load_reranker(model: str) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype="float32")
    except Exception as error:  # whatever the hub, the configuration and the weights raise
        raise _cannot_be_had("reranker_model", model) from error
    return tokenizer, loaded.eval().to("cuda" if torch.cuda.is_available() else "cpu")


def _fill_pairs(prompt: str, tokenizer: Any, pairs: Sequence[Pair]) -> list[str]:
    """Fill each pair into the prompt, without the tokens of their texts that would end or begin a message."""

    def harmless(text: str) -> str:
        for token in tokenizer.all_special_tokens:
            text = text.replace(token, " ")
        return text

    return [
        prompt.format(premise=harmless(pair.group.text), hypothesis=harmless(word_hypothesis(pair.claim)))
        for pair in pairs
    ]

"""Models of a few thousand random weights, in folders as the hub's are."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = re.findall(
    r"\S+",
    "the pool opens at 6 7 tickets are free passage question answer premise hypothesis predict determine if "
    "is true given . : ? <pad> </s> <unk> [CLS] [SEP]",
)


def save_tokenizer(folder: Path, pair: bool = False) -> None:
    """A tokenizer of whole words and punctuation marks; with `pair`, two texts are separated as in BERT."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+|[^\w\s]"), "removed", invert=True)
    if pair:
        ids = [(word, vocabulary[word]) for word in ("[CLS]", "[SEP]")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
        )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="</s>", pad_token="<pad>", unk_token="<unk>"
    ).save_pretrained(folder)
    # A peer's older transformers does not know the class that ours writes.
    settings = folder / "tokenizer_config.json"
    written = json.loads(settings.read_text(encoding="utf-8"))
    settings.write_text(json.dumps({**written, "tokenizer_class": "PreTrainedTokenizerFast"}))


def tiny_t5(folder: Path) -> Any:
    """Shape of a T5 with two small layers; saved as a foundation is, with a tokenizer."""
    from transformers import T5Config

    config = T5Config(
        vocab_size=256,
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        pad_token_id=WORDS.index("<pad>"),
        eos_token_id=WORDS.index("</s>"),
        decoder_start_token_id=0,
    )
    config.save_pretrained(folder)
    save_tokenizer(folder)
    return config


def tiny_hhem(folder: Path, foundation: Path) -> Any:
    """HHEM's files: a T5 token classifier whose weights' names begin with `t5.`."""
    import torch
    from safetensors.torch import save_file
    from transformers import T5ForTokenClassification

    torch.manual_seed(3)
    config = tiny_t5(foundation)
    config.num_labels = 2
    model = T5ForTokenClassification(config).eval()
    folder.mkdir()
    state = {
        f"t5.{name}": tensor.clone()
        for name, tensor in model.state_dict().items()
        if not name.endswith("embed_tokens.weight")
    }
    save_file(state, folder / "model.safetensors")
    published = {"foundation": str(foundation), "model_type": "HHEMv2Config"}
    (folder / "config.json").write_text(json.dumps(published))
    return model


def tiny_minicheck(folder: Path, kind: str) -> Any:
    """MiniCheck's or FactCG's files: a whole T5, or a RoBERTa or DeBERTa classifier of two classes."""
    import torch
    from transformers import (
        DebertaV2Config,
        DebertaV2ForSequenceClassification,
        RobertaConfig,
        RobertaForSequenceClassification,
        T5ForConditionalGeneration,
    )

    torch.manual_seed(3)
    sizes: dict[str, Any] = {
        "vocab_size": len(WORDS),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 600,
        "num_labels": 2,
        "pad_token_id": WORDS.index("<pad>"),
    }
    if kind == "t5":
        model: Any = T5ForConditionalGeneration(tiny_t5(folder))
    elif kind == "deberta":
        save_tokenizer(folder)
        config = DebertaV2Config(**sizes, relative_attention=True, pooler_hidden_size=16)
        model = DebertaV2ForSequenceClassification(config)
    else:
        save_tokenizer(folder)
        model = RobertaForSequenceClassification(RobertaConfig(**sizes))
    model.eval().save_pretrained(folder)
    return model


def tiny_nli(folder: Path, labels: Sequence[str]) -> None:
    """A RoBERTa classifier that holds everything to be of the first class, with these labels."""
    import torch
    from transformers import RobertaConfig, RobertaForSequenceClassification

    save_tokenizer(folder, pair=True)
    config = RobertaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=600,
        id2label=dict(enumerate(labels)),
        pad_token_id=WORDS.index("<pad>"),
    )
    model: Any = RobertaForSequenceClassification(config)
    model.classifier.out_proj.bias.data = torch.tensor([9.0, *[0.0] * (len(labels) - 1)])
    model.eval().save_pretrained(folder)


def tiny_lettucedetect(folder: Path) -> None:
    """A BERT that classifies tokens, with two layers."""
    import torch
    from transformers import BertConfig, BertForTokenClassification

    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=4096,
        num_labels=2,
    )
    BertForTokenClassification(config).save_pretrained(folder)
    save_tokenizer(folder, pair=True)

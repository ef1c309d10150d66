"""The scripts that make a folder for vLLM from a GGUF file, on tiny files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize as in_blocks
from safetensors.torch import load_file

from hallulab.agents.serving import convert_gguf
from hallulab.agents.serving.convert_gguf import in_transformers_order, main, quantize, transformers_name
from hallulab.agents.serving.describe_gguf import quantization_config

ROWS = np.arange(8 * 32, dtype=np.float32).reshape(8, 32) / 64
"""A matrix of eight outputs; all its numbers are exact in bfloat16 or nearly so."""


def gguf_file(path: Path, architecture: str) -> Path:
    """Write a model of one layer: a query projection in blocks of 32, a norm, embeddings, and no more."""
    writer = GGUFWriter(path, architecture)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    blocks = in_blocks(ROWS, GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.attn_q.weight", blocks, raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.attn_norm.weight", np.array([1.5, -2.0], dtype=np.float32))
    writer.add_tensor("token_embd.weight", ROWS[:3].astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def converted(folder: Path, architecture: str, form: str) -> dict[str, torch.Tensor]:
    """Convert a file of `gguf_file`; return the tensors."""
    main(gguf_file(folder / "model.gguf", architecture), folder / "made", form)
    return load_file(folder / "made" / "model.safetensors")


def exact_rows() -> torch.Tensor:
    """The query projection as it comes out of its blocks, in bfloat16."""
    from gguf import dequantize

    blocks = in_blocks(ROWS, GGMLQuantizationType.Q8_0)
    return torch.tensor(dequantize(blocks, GGMLQuantizationType.Q8_0)).to(torch.bfloat16)


@pytest.mark.parametrize("rows_of_a_piece", [3, 4096])
def test_weights_are_dequantised_to_bfloat16_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_of_a_piece: int
) -> None:
    monkeypatch.setattr(convert_gguf, "ROWS", rows_of_a_piece)
    made = converted(tmp_path, "qwen2", "bf16")
    assert sorted(made) == [
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
    ]
    assert torch.equal(made["model.layers.0.self_attn.q_proj.weight"], exact_rows())
    assert made["model.layers.0.input_layernorm.weight"].tolist() == [1.5, -2.0]
    assert torch.equal(made["model.embed_tokens.weight"], torch.tensor(ROWS[:3]).to(torch.bfloat16))


def test_projections_become_int8_and_the_rest_stays(tmp_path: Path) -> None:
    made = converted(tmp_path, "qwen2", "w8a8")
    weight, scale = quantize(exact_rows())
    assert torch.equal(made["model.layers.0.self_attn.q_proj.weight"], weight)
    assert torch.equal(made["model.layers.0.self_attn.q_proj.weight_scale"], scale)
    assert made["model.embed_tokens.weight"].dtype == torch.bfloat16


def test_int8_has_one_scale_an_output() -> None:
    weight, scale = quantize(torch.tensor([[127.0, -63.5], [0.0, 0.0], [-2.54, 0.02]]))
    assert weight.tolist() == [[127, -64], [0, 0], [-127, 1]]
    assert weight.dtype == torch.int8
    assert torch.allclose(scale, torch.tensor([[1.0], [1e-8 / 127], [0.02]]), rtol=1e-6)
    assert quantization_config()["format"] == "int-quantized"


def test_rows_of_llama_are_put_into_the_order_of_transformers(tmp_path: Path) -> None:
    made = converted(tmp_path, "llama", "bf16")
    order = [0, 2, 1, 3, 4, 6, 5, 7]  # two heads of two pairs
    assert torch.equal(made["model.layers.0.self_attn.q_proj.weight"], exact_rows()[order])


def test_halves_of_heads_come_from_turns() -> None:
    in_turns = torch.tensor([[0], [10], [1], [11], [2], [12], [3], [13]])
    assert in_transformers_order(in_turns, 1).flatten().tolist() == [0, 1, 2, 3, 10, 11, 12, 13]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("output.weight", "lm_head.weight"),
        ("blk.12.attn_k.bias", "model.layers.12.self_attn.k_proj.bias"),
        ("blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
    ],
)
def test_tensors_get_their_names_in_transformers(name: str, expected: str) -> None:
    assert transformers_name(name) == expected


def test_a_tensor_of_another_architecture_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'blk.0.ffn_gate_inp.weight', which no llama"):
        transformers_name("blk.0.ffn_gate_inp.weight")

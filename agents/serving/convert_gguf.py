"""Convert the weights of a GGUF file to one that vLLM serves. A script for the server's environment.

    python convert_gguf.py FILE.gguf FOLDER bf16|w8a8

Tensors are dequantised one by one, in pieces of some thousand rows, on all cores. Going through a model of
transformers gives the same bits and takes four times as long. `describe_gguf.py` writes the rest.

With `w8a8` projections become int8, for CPUs that are fast at int8. Quantisation is symmetric, with one scale
per output channel and plain rounding; activations are quantised per token while serving. Embeddings, norms,
biases and the output head do not change. The layout is `int-quantized` of compressed-tensors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

INT8_MAX = 127
ROWS = 4096
"""Rows of a piece: a large matrix is never in memory in float32 as a whole."""

OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
"""Tensors outside the layers: their names in GGUF → in transformers."""
IN_A_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Tensors of a layer, likewise. They are those of the architectures llama and qwen2."""
HEADS = {"attn_q": "head_count", "attn_k": "head_count_kv"}
"""Tensors whose rows GGUF stores in another order for the architecture llama; what counts their heads."""

_IN_A_LAYER = re.compile(r"blk\.(\d+)\.(\w+)")


def main(source: Path, target: Path, form: str) -> None:
    """Write `model.safetensors` into the folder `target` from the file `source`."""
    from gguf import GGUFReader
    from safetensors.torch import save_file

    reader = GGUFReader(str(source))
    tensors: dict[str, torch.Tensor] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        # Those that take longest come first, so that no core waits at the end.
        converted = pool.map(
            lambda tensor: list(_converted(reader, tensor, form)),
            sorted(reader.tensors, key=lambda tensor: -int(tensor.n_elements)),
        )
        for named in converted:
            tensors.update(named)
    target.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(target / "model.safetensors"), metadata={"format": "pt"})


def _converted(reader: Any, tensor: Any, form: str) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield a tensor by its name in transformers, with the scales of its rows if it becomes int8."""
    name = transformers_name(tensor.name)
    weight = dequantize(tensor)
    counted = HEADS.get(tensor.name.split(".")[-2])
    if counted is not None and reader.fields["general.architecture"].contents() == "llama":
        heads = int(reader.fields[f"llama.attention.{counted}"].contents())
        weight = in_transformers_order(weight, heads)  # GGUF has its rows in an order of its own
    if form == "w8a8" and name.endswith("proj.weight"):
        weight, scale = quantize(weight)
        yield f"{name}_scale", scale
    yield name, weight


def transformers_name(name: str) -> str:
    """Return a tensor's name in transformers by its name in GGUF.

    Raises:
        ValueError: the architecture has other tensors.
    """
    stem, _, kind = name.rpartition(".")
    if stem in OUTSIDE:
        return f"{OUTSIDE[stem]}.{kind}"
    layer = _IN_A_LAYER.fullmatch(stem)
    if layer is None or layer[2] not in IN_A_LAYER:
        raise ValueError(f"the GGUF file has a tensor {name!r}, which no llama or qwen2 model has")
    return f"model.layers.{layer[1]}.{IN_A_LAYER[layer[2]]}.{kind}"


def dequantize(tensor: Any) -> torch.Tensor:
    """Return a tensor of a GGUF file in bfloat16."""
    import torch
    from gguf import dequantize as in_float32

    rows = range(0, len(tensor.data), ROWS)
    pieces = (in_float32(tensor.data[start : start + ROWS], tensor.tensor_type) for start in rows)
    # A copy, because the file's own numbers cannot be written to, which torch warns about.
    return torch.cat([torch.tensor(piece).to(torch.bfloat16) for piece in pieces])


def in_transformers_order(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Return a weight whose rows are halves of heads, as transformers has them. GGUF has them in turns."""
    pairs = weight.reshape(heads, len(weight) // heads // 2, 2, *weight.shape[1:])
    return pairs.swapaxes(1, 2).reshape(weight.shape).contiguous()


def quantize(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a weight (outputs × inputs) to int8 with a float32 scale per output: weight ≈ int8 · scale."""
    import torch

    exact = weight.float()
    scale = exact.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / INT8_MAX
    return torch.round(exact / scale).clamp(-INT8_MAX, INT8_MAX).to(torch.int8), scale


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])

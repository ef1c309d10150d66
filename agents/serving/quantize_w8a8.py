"""Store a model's projections as int8, for CPUs that are fast at int8. A script for the server's environment.

    python quantize_w8a8.py SOURCE_FOLDER TARGET_FOLDER

Quantisation is symmetric, with one scale per output channel and plain rounding; activations are quantised per
token while serving. The layout is `int-quantized` of compressed-tensors. Embeddings, norms, biases and the
output head do not change.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

INT8_MAX = 127


def main(source: Path, target: Path) -> None:
    """Write the folder `target` from the model folder `source`."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    for shard in sorted(source.glob("*.safetensors")):
        with safe_open(str(shard), "pt") as file:
            for name in file.keys():  # noqa: SIM118 (it is no mapping)
                tensors.update(_stored(name, file.get_tensor(name)))
    target.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(target / "model.safetensors"), metadata={"format": "pt"})
    for file in source.iterdir():
        if file.suffix != ".safetensors" and file.name not in {
            "config.json",
            "model.safetensors.index.json",
        }:
            shutil.copy(file, target / file.name)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = quantization_config()
    (target / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _stored(name: str, tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return a weight (outputs × inputs) as int8 with its scale (outputs × 1); other tensors unchanged."""
    if not name.endswith("proj.weight"):
        return {name: tensor.contiguous()}
    quantised, scale = quantize(tensor)
    return {name: quantised, f"{name}_scale": scale}


def quantize(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Round a weight (outputs × inputs) to int8 with one scale per output.

    Returns:
        int8 of the same shape, and float32 scales (outputs × 1) with weight ≈ int8 · scale.
    """
    import torch

    exact = weight.float()
    scale = exact.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / INT8_MAX
    return torch.round(exact / scale).clamp(-INT8_MAX, INT8_MAX).to(torch.int8), scale


def quantization_config() -> dict[str, Any]:
    """Return the description of this layout for compressed-tensors in vLLM."""
    int8 = {"num_bits": 8, "type": "int", "symmetric": True}
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {**int8, "strategy": "channel", "dynamic": False},
                "input_activations": {**int8, "strategy": "token", "dynamic": True},
            }
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

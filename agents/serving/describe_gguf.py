"""Write configuration, tokenizer and chat template of a GGUF file. A script for the server's environment.

    python describe_gguf.py FILE.gguf FOLDER bf16|w8a8

`convert_gguf.py` writes the weights into the same folder. The form is told to vLLM in `config.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(source: Path, target: Path, form: str) -> None:
    """Write into the folder `target` all of a model but its weights, from the file `source`."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    folder, file = str(source.parent), source.name
    config = AutoConfig.from_pretrained(folder, gguf_file=file)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)  # type: ignore[no-untyped-call]
    model.config.architectures = [type(model).__name__]
    target.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(target)
    model.generation_config.save_pretrained(target)
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(target)
    if form == "w8a8":
        described = json.loads((target / "config.json").read_text(encoding="utf-8"))
        described["quantization_config"] = quantization_config()
        (target / "config.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")


def quantization_config() -> dict[str, Any]:
    """Return the description of int8 weights (`convert_gguf.py`) for compressed-tensors in vLLM."""
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
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])

"""Convert GGUF weights to a folder that vLLM serves. A script for the server's environment.

    python convert_gguf.py FILE.gguf FOLDER

Weights are dequantised to bfloat16. Tokenizer, chat template and configuration come from the GGUF file, too.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(source: Path, target: Path) -> None:
    """Write `target` (config, weights, tokenizer) from the file `source`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder, file = str(source.parent), source.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model = AutoModelForCausalLM.from_pretrained(
        folder,
        gguf_file=file,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(gguf_file=file, dequantize=True),
    )
    # The saved weights are no longer quantised, and vLLM refuses a folder that says otherwise.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

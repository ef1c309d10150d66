"""Train the package's model of `combined`: `python -m benchmarks.train_combined --data DIR`.

DIR holds the folders ragtruth, wice and begin. The same data and versions give the same model.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import build_parser
from hallulab.detectors.combined.detector import SHIPPED, train
from hallulab.detectors.combined.model import save_model
from hallulab.scenarios.datasets import load_labelled

PARTS = (
    ("ragtruth", None),
    ("wice", "claims"),
    ("wice", "tokens"),
    ("wice", "tokens-train"),
    ("begin", None),
)
"""Data sets, and the part of each."""


def main() -> None:
    """Train and write the model into the package."""
    parser = build_parser("train_combined", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with ragtruth, wice and begin")
    parser.add_argument("--seed", type=int, default=17, help="of the parts and the trees")
    given = parser.parse_args()
    replies = [
        reply for dataset, source in PARTS for reply in load_labelled(dataset, given.data / dataset, source)
    ]
    model = train(replies, given.seed)
    SHIPPED.parent.mkdir(exist_ok=True)
    save_model(model, SHIPPED)
    print(f"{SHIPPED.name}: {SHIPPED.stat().st_size / 1024:.0f} KiB, {model.thresholds}")


if __name__ == "__main__":
    main()

"""Train the EvidenceChain models of the package: `python -m benchmarks.train_evidence_chain --data DIR`.

DIR holds RAGTruth's two files. Every method is written with its thresholds, `lr` and `rf` for both feature
sets. The same data and versions give the same models.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import build_parser
from hallulab.detectors.evidence_chain.detector import locate_shipped_model
from hallulab.detectors.evidence_chain.model import Method, save_model
from hallulab.detectors.evidence_chain.training import train
from hallulab.detectors.features.features import FeatureSet
from hallulab.scenarios.datasets import load_labelled

MODELS: tuple[tuple[Method, FeatureSet], ...] = (
    ("lexical", "paper"),
    ("bm25", "paper"),
    ("tfidf", "paper"),
    ("nli-rules", "paper"),
    ("lr", "paper"),
    ("lr", "extended"),
    ("rf", "paper"),
    ("rf", "extended"),
)
"""The shipped models."""


def main() -> None:
    """Train all and write them into the package."""
    parser = build_parser("train_evidence_chain", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with RAGTruth's two files")
    parser.add_argument("--seed", type=int, default=17, help="of the parts and the forests")
    given = parser.parse_args()
    replies = load_labelled("ragtruth", given.data)
    for method, features in MODELS:
        model = train(method, replies, given.seed, features)
        path = locate_shipped_model(method, features)
        save_model(model, path)
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB, {model.thresholds}")


if __name__ == "__main__":
    main()

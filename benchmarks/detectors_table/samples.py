"""The replies that the table measures on, and the recordings of the model's answers about them."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.command import find_recording
from hallulab.detectors.evidence_chain.detector import EVIDENCE_CHAIN
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.bench.baselines import RaterAgreement, compute_rater_agreement
from hallulab.simulator.bench.split import choose_replies
from hallulab.simulator.statistics.intervals import Rounded

KEPT = Path("tests") / "recordings" / "labelled"
"""Folder of the repository's samples, relative to it. Its README names the sources of the texts."""

SEED = 0
"""Seed of samples, folds, training and sampled answers: that of `hallulab bench` without `--seed`."""


@dataclass(frozen=True)
class TableDataSet:
    """A data set of the table."""

    title: str
    """Its name for people."""
    part: str | None = None
    """The part that is read, as by `hallulab bench --source`."""
    whole: bool = False
    """Whether all of it is measured on, because there is so little."""


SOURCES = {
    "mtrag": TableDataSet("MTRAG", whole=True),
    "gold": TableDataSet("gold (annotated runs)", whole=True),
    "ragtruth": TableDataSet("RAGTruth"),
    "wice": TableDataSet("WiCE claims", "claims"),
    "begin": TableDataSet("BEGIN, Wizard of Wikipedia", "wow"),
}
"""The data sets by name of their loader, which is also that of their folder."""

PARTS: dict[tuple[str, str], int] = {("mtrag", "metarag"): 24}
"""Data set and detector → the number of its replies that the detector is measured on, drawn by the seed: with
thirty calls or more a reply, all of them take hours."""

LEARNT_FROM: dict[str, set[str]] = {
    "combined": {"ragtruth", "wice", "begin"},
    **{name: {"ragtruth"} for name in EVIDENCE_CHAIN},
}
"""Detector that learns → the data sets that its shipped model has learnt from; see
`benchmarks/train_combined.py` and `benchmarks/train_evidence_chain.py`."""

CHOSEN_ON: dict[str, set[str]] = {
    "lexical": {"begin"},
    "halludetect": {"gold", "mtrag", "begin", "wice", "ragtruth"},
    "metarag": {"gold", "begin"},
    "direct-judge": {"begin"},
    "logic-graph": {"wice"},
}
"""Other detector → the data sets on which its calibration, options or threshold were chosen; see
`detectors/base/calibration.yaml`, the detectors' `tuned.yaml`, HalluDetect's `mixture.yaml`, and
docs/studies/methods.md."""


@lru_cache(maxsize=len(SOURCES))
def sample(dataset: str, data: Path, limit: int) -> tuple[LabelledReply, ...]:
    """Return the replies to measure on: the choice of `hallulab bench DATASET --limit LIMIT`.

    Args:
        dataset: a name of `SOURCES`.
        data: folder that holds the data sets' folders, or the kept samples.
        limit: largest number of replies of a sampled data set.

    Raises:
        UsageError: the files are missing or wrong, or hold no labelled reply.
    """
    source = SOURCES[dataset]
    kept = kept_sample(data, dataset)
    replies = _read(kept) if kept.is_file() else load_labelled(dataset, data / dataset, source.part)
    if not replies:
        raise UsageError(f"{data / dataset}: there is no labelled reply to measure on.")
    return tuple(choose_replies(replies, None if source.whole else limit, SEED))


def sample_for(detector: str, dataset: str, data: Path, limit: int) -> tuple[LabelledReply, ...]:
    """Return the replies that a detector is measured on; arguments and errors as `sample`."""
    replies = sample(dataset, data, limit)
    return tuple(choose_replies(replies, PARTS.get((dataset, detector)), SEED))


def kept_sample(folder: Path, dataset: str) -> Path:
    """Return the file or folder of a data set in a folder of kept samples."""
    return folder / f"{dataset}.jsonl.gz"


def _read(path: Path) -> list[LabelledReply]:
    with gzip.open(path, "rb") as file:
        return [
            check_record(line, LabelledReply, f"{path}, line {number}", "docs/bench.md")
            for number, line in parse_lines(file, path)
        ]


class Described(Frozen):
    """A sample: its size, base rate and floor, and the agreement of its raters."""

    title: str
    dataset: str
    replies: int
    groups: int
    hallucinated: Rounded
    flag_all_f1: Rounded
    raters: RaterAgreement | None


def described(dataset: str, data: Path, limit: int) -> Described:
    """Describe a sample."""
    replies = sample(dataset, data, limit)
    share = sum(bool(reply.label) for reply in replies) / len(replies)
    return Described(
        title=SOURCES[dataset].title,
        dataset=dataset,
        replies=len(replies),
        groups=len({reply.group for reply in replies}),
        hallucinated=share,
        flag_all_f1=2 * share / (1 + share),
        raters=compute_rater_agreement(replies),
    )


FOLDER = Path("tests") / "recordings" / "detectors_table"
"""Folder of the packed ones, relative to the repository."""


def growing(folder: Path, dataset: str, detector: str) -> Path:
    """Return the recording that answers are added to."""
    return folder / f"{dataset}.{detector}.jsonl"


def recorded(folder: Path, dataset: str, detector: str) -> Path | None:
    """Return the recording to replay; None where there is none."""
    return find_recording(growing(folder, dataset, detector))

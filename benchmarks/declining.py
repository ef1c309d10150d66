"""Measure how often the rules find replies that decline: `python -m benchmarks.declining`.

The replies are in `tests/recordings/labelled/declining.jsonl.gz`; its README says who labelled them. They are
halved by their source (a text, a conversation): the rules of `hallulab.scenarios.text.declining` were written
on the one half, and the other one measures them. Intervals are exact (Clopper and Pearson, 95%); they treat
the replies to one source as independent.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from scipy.stats import binomtest

from benchmarks.command import build_parser, format_table
from benchmarks.detectors_table.samples import KEPT
from hallulab.scenarios.files.data_files import check_record
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.text.declining import ReplyKind, classify_reply, is_declining
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Frozen

LABELS = KEPT / "declining.jsonl.gz"


class ReadReply(Frozen):
    """A reply that a reader labelled."""

    id: str
    """Its data set, and its identifier there."""
    source: str
    group: str
    """Its source: a text or a conversation."""
    kind: ReplyKind
    unsure: bool = False
    """True if another reader may say otherwise."""
    clean: bool | None = None
    """Whether the data set's people found no hallucination in it; None: they were not asked."""
    declining: tuple[str, ...] = ()
    """Its sentences that decline."""
    reply: str

    @property
    def held_out(self) -> bool:
        """Whether it measures the rules, instead of having been read when they were written."""
        return sha256(self.group.encode()).digest()[0] % 2 == 1


class Agreement(NamedTuple):
    """Counts of what the rules find, against the labels."""

    found: int
    """What both call declining."""
    wrong: int
    """What only the rules do."""
    missed: int
    """What only the reader does."""

    def render(self) -> tuple[str, str]:
        """Format precision and recall with their intervals."""
        return (
            render_share(self.found, self.found + self.wrong),
            render_share(self.found, self.found + self.missed),
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    build_parser("declining", __doc__).parse_args(arguments)
    print(describe_rules(read_labels()))
    return 0


def read_labels(path: Path = LABELS) -> list[ReadReply]:
    """Read the labelled replies."""
    with gzip.open(path, "rb") as file:
        return [
            check_record(line, ReadReply, f"{path}, line {number}", "tests/recordings/labelled/README.md")
            for number, line in parse_lines(file, path)
        ]


def compare_replies(replies: Iterable[ReadReply], kind: ReplyKind = "declines") -> Agreement:
    """Compare the rules with the labels: which replies are of that kind."""
    counts = Counter((classify_reply(one.reply) == kind, one.kind == kind) for one in replies)
    return Agreement(counts[True, True], counts[True, False], counts[False, True])


def compare_sentences(replies: Iterable[ReadReply]) -> Agreement:
    """Compare the rules with the labels: which sentences decline."""
    counts = Counter(
        (is_declining(sentence), sentence in one.declining)
        for one in replies
        for sentence in _list_sentences(one.reply)
    )
    return Agreement(counts[True, True], counts[True, False], counts[False, True])


def _list_sentences(reply: str) -> list[str]:
    return [" ".join(region.of(reply).split()) for region in split_spoken_sentences(reply)]


def describe_rules(replies: Sequence[ReadReply]) -> str:
    """Write precision and recall of the rules on both halves as a table in Markdown."""
    halves = {
        "written on": [one for one in replies if not one.held_out],
        "held out": [one for one in replies if one.held_out],
    }
    rows = []
    for name, half in halves.items():
        sources = len({one.group for one in half})
        for what, agreement in (
            ("replies that decline", compare_replies(half)),
            ("sentences that decline", compare_sentences(half)),
            ("replies that ask back", compare_replies(half, "asks back")),
        ):
            rows.append((name, f"{len(half)} of {sources}", what, str(agreement.found), *agreement.render()))
    head = ("half", "replies of sources", "found", "rightly", "precision [95%]", "recall [95%]")
    unsure = sum(one.unsure for one in replies)
    told = f"A language model labelled them, not people; of {unsure} replies it was unsure."
    return f"{format_table(head, rows)}\n\n{told}"


def render_share(count: int, total: int) -> str:
    """Format a share with its exact 95% interval."""
    bounds = binomtest(count, total).proportion_ci(method="exact")
    return f"{count / total:.1%} [{bounds.low:.1%}, {bounds.high:.1%}]"


if __name__ == "__main__":
    sys.exit(main())

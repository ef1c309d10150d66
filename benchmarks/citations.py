"""Measure how often citations are judged rightly: `python -m benchmarks.citations [--data DIR]`.

RAGTruth's replies to questions have three passages, and some cite them: `(Passage 2)`, `according to passage
1`. People labelled what is hallucinated in them, not if the citations are right. So there are two tables:

- the citations, by the label of their sentence. One in a clean sentence is nearly always right, one in a
  sentence with a hallucination may be either;
- citations of clean replies that `moved-citation` moved to another passage, and their twins. It counts single
  words; the rules look for words and numbers of two neighbouring sentences.

`FOREIGN` and `BETTER` were chosen on the citations in clean sentences, so these numbers flatter.

`--data` is a folder with RAGTruth in `ragtruth`; else the sample in the repository is read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser, format_table, get_exit_code
from benchmarks.detectors_table.samples import KEPT, SEED, sample
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.citations import read_citations
from hallulab.simulator.metrics.citations import group_by_sentence, judge_citations, list_names
from hallulab.simulator.planting.material import build_sentence_bank, generate_clean_replies
from hallulab.simulator.planting.moved_citation import KIND
from hallulab.simulator.planting.plant import plant

MOST, MOVED = 100_000, 100
"""Largest number of replies that are read, and of citations that are moved."""
HEAD = ("citations", "number", "called right", "called wrong", "undetermined")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("citations", __doc__)
    parser.add_argument("--data", type=Path, metavar="DIR", default=KEPT, help="folder of the data sets")
    given = parser.parse_args(arguments)

    def run() -> None:
        found = [one for one in sample("ragtruth", given.data, MOST) if one.task == "qa"]
        replies = [one for one in found if judge_citations(one.reply, one.passages, one.question)]
        print(f"{describe_labelled(replies)}\n\n{describe_moved(replies)}")

    return get_exit_code(run)


def describe_labelled(replies: Sequence[LabelledReply]) -> str:
    """Write as a table in Markdown how the citations are judged, by the label of their sentence."""
    counts: dict[bool, Counter[bool | None]] = {False: Counter(), True: Counter()}
    for reply in replies:
        read = read_citations(reply.reply, [list_names(passage) for passage in reply.passages])
        wrong = {
            citation.place
            for sentence, own in group_by_sentence(read.plain, read.citations)
            if any(span.start < sentence.end and sentence.start < span.end for span in reply.spans or ())
            for citation in own
        }
        for one in judge_citations(reply.reply, reply.passages, reply.question):
            counts[one.citation.place in wrong][one.is_right] += 1
    rows = [
        _build_row("in clean sentences", counts[False]),
        _build_row("in sentences with a hallucination", counts[True]),
    ]
    return format_table(HEAD, rows)


def describe_moved(replies: Sequence[LabelledReply]) -> str:
    """Write as a table in Markdown how moved citations and their twins are judged."""
    clean = generate_clean_replies(replies, SEED)
    pairs = plant([clean], build_sentence_bank(replies), (KIND,), MOVED, SEED).replies
    counts: tuple[Counter[bool | None], Counter[bool | None]] = (Counter(), Counter())
    for error, twin in zip(pairs[::2], pairs[1::2], strict=True):
        [span] = error.spans or ()
        for reply, found in zip((error, twin), counts, strict=True):
            for one in judge_citations(reply.reply, reply.passages, reply.question):
                found[one.is_right] += one.citation.place.start <= span.start < one.citation.place.end
    return format_table(HEAD, [_build_row("moved", counts[0]), _build_row("their twins", counts[1])])


def _build_row(name: str, found: Counter[bool | None]) -> tuple[str, ...]:
    number = found.total()
    shares = [f"{found[key]} ({found[key] / max(number, 1):.0%})" for key in (True, False, None)]
    return (name, str(number), *shares)


if __name__ == "__main__":
    sys.exit(main())

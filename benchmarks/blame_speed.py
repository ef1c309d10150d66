"""What it costs a report to say whose fault hallucinated replies are (docs/blame.md).

`python -m benchmarks.blame_speed` counts 2,000 made conversations of three turns and three detectors without
and with the documents of consumer-grievance-india, and prints the processor time of each; `--conversations`
counts others. Reading the journals and looking for flaws of users is not measured (docs/scale.md has the
processor time of whole reports).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from benchmarks.command import build_parser
from benchmarks.scale.made_run import CHATBOTS, DETECTORS, conversations, verdicts
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.scenarios.transcript import Conversation, Passage, Verdict
from hallulab.simulator.metrics.blame import MOST_EXAMINED, Library
from hallulab.simulator.metrics.hallucinations import index_by_detector
from hallulab.simulator.metrics.metric import RunFacts
from hallulab.simulator.report.build import RunCounts

PACK = "consumer-grievance-india"
LARGE = 100_000

Judged = Sequence[tuple[Conversation, Sequence[Verdict]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = build_parser("blame_speed", __doc__)
    parser.add_argument("--conversations", type=int, default=MOST_EXAMINED, metavar="N")
    number = parser.parse_args(arguments).conversations
    judged = [(one, list(verdicts(one))) for one in conversations(number)]
    passages = tuple(one for document in load_scenario(PACK).documents for one in cut_into_passages(document))
    begun = time.process_time()
    _ = Library(passages, number).index
    print(f"the words of the pack: {time.process_time() - begun:.2f} s, once in a process")
    without, whole = (time_counting(judged, one) / number for one in (None, passages))
    print(f"a conversation: {1000 * without:.2f} ms without, {1000 * whole:.2f} ms where it is examined")
    share = Library(passages, LARGE).share
    more = share * (whole - without)
    print(f"of {LARGE:,} conversations {share:.0%} are examined: {LARGE * more:.0f} s more")
    return 0


def time_counting(judged: Judged, passages: Sequence[Passage] | None) -> float:
    """Return the seconds of a processor in which a report counts conversations."""
    counts = RunCounts(RunFacts(CHATBOTS, DETECTORS, passages=passages, planned=len(judged)))
    begun = time.process_time()
    for one, found in judged:
        counts.add(one, index_by_detector(found), ())
    return time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())

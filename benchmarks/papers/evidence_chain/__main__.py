"""Write the EvidenceChain paper's tables 1 to 11 and figures 1 to 7, from our run of its experiment.

`sentences.csv` and `words.csv` have every scored sentence and word of the test part. The data are the made
audit corpus, or RAGTruth's two files with `--data`. Then there is no table 9, because RAGTruth does not say
what supports a sentence. WiCE and HotpotQA do: `--supporting` measures attribution on them, and writes
`table-9-real.csv`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import build_parser, get_exit_code
from benchmarks.papers.evidence_chain.tables import write_tables
from hallulab.simulator.records.outputs import check_outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and write its files; return the exit code, as of `hallulab`."""
    parser = build_parser("papers.evidence_chain", __doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the tables and figures go")
    parser.add_argument("--data", type=Path, help="folder of RAGTruth's response.jsonl and source_info.jsonl")
    parser.add_argument(
        "--supporting", type=Path, help="folder with wice/claims.jsonl and hotpotqa/distractor.jsonl, or one"
    )
    given = parser.parse_args(arguments)

    def run() -> None:
        check_outputs({}, (given.data, given.supporting), folders={"DIR": given.folder})
        write_tables(given.folder, given.data, given.supporting)

    return get_exit_code(run)


if __name__ == "__main__":
    sys.exit(main())

"""Write the EvidenceChain paper's tables 1 to 11 and figures 1 to 7, from our run of its experiment."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.papers.evidence_chain.tables import write_audit_tables
from scenarios.errors import HallulabError, UsageError
from simulator.runs.outputs import check_outputs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and write its files; return the exit code, as of `hallulab`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers.evidence_chain", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the tables and figures go")
    folder = parser.parse_args(arguments).folder
    try:
        check_outputs({}, folders={"DIR": folder})
        write_audit_tables(folder)
    except HallulabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

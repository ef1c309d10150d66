"""Command `hallulab bench`: detectors against labelled data."""

from __future__ import annotations

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.cli.options import expand_options
from hallulab.simulator.options.commands import BenchOptions


@expand_options
def bench(options: BenchOptions) -> None:
    """Measure detectors on labelled data, next to the lexical floor.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.bench.command import run_bench, write_results
    from hallulab.simulator.bench.document import build_document
    from hallulab.simulator.show.terminal import print_document

    results = run_until_stopped(run_bench(options))
    try:
        print_document(build_document(results))
    finally:
        # The reader of the table may stop early (`| head`). The files are written nevertheless.
        write_results(options, results)
    if results.report.failed is not None:
        raise OperationalError(results.report.failed)


COMMANDS = {"bench": bench}

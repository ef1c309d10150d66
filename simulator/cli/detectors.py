"""Commands that measure and calibrate detectors on known errors."""

from __future__ import annotations

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.cli.console import print_json, print_lines
from hallulab.simulator.cli.options import AsJson, expand_options
from hallulab.simulator.options.commands import BenchOptions, CalibrateOptions, RagTrustOptions


@expand_options
def bench(options: BenchOptions) -> None:
    """Measure detectors on labelled data, next to the lexical floor.

    Arguments after `--` are passed on to the model server.
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


@expand_options
def calibrate(options: CalibrateOptions, as_json: AsJson = False) -> None:
    """Fit the detectors' thresholds on planted errors and their clean twins, for a model of one's own.

    The fits are kept, and used wherever the same model is asked the same. Arguments after `--` are
    passed on to the model server.
    """
    from hallulab.simulator.calibration.document import build_calibration_document, build_policy_document
    from hallulab.simulator.calibration.policy import PolicyFit, calibrate_from_options
    from hallulab.simulator.show.terminal import print_document

    report = run_until_stopped(calibrate_from_options(options))
    if as_json:
        print_json(report.model_dump_json(indent=2) + "\n")
    elif isinstance(report, PolicyFit):
        print_document(build_policy_document(report))
        print_lines(f"\nwritten to {options.out}")
    else:
        print_document(build_calibration_document(report))
        print_lines(f"\nkept in {report.kept_in}")


@expand_options
def rag_trust(options: RagTrustOptions, as_json: AsJson = False) -> None:
    """Ask chatbots with four prompt strategies about poisoned and distracting documents, and report.

    Arguments after `--` are passed on to the model server.
    """
    from hallulab.simulator.rag_trust.command import run_from_options
    from hallulab.simulator.rag_trust.document import build_document
    from hallulab.simulator.show.terminal import print_document

    folder, report = run_until_stopped(run_from_options(options))
    if as_json:
        print_json(report.text())
    else:
        print_document(build_document(report))
        print_lines(f"\nreport: {folder.page}")
    if report.failed is not None:
        raise OperationalError(report.failed)

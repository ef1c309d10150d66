"""What `hallulab gate` and `hallulab compare --save` do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hallulab.scenarios.files.atomic import write_together
from hallulab.simulator.compare.summary import read_summary, summarize_run
from hallulab.simulator.gate.judge import judge_run
from hallulab.simulator.gate.junit import render_junit
from hallulab.simulator.gate.markdown import render_markdown
from hallulab.simulator.gate.quotations import add_quotations
from hallulab.simulator.gate.result import GateResult
from hallulab.simulator.gate.rules import GateRules, read_severity
from hallulab.simulator.options.commands import GateOptions
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs


def gate_from_options(options: GateOptions) -> GateResult:
    """Hold a run against a baseline, and write what was asked for.

    Raises:
        UsageError: an option is wrong, or a file cannot be used.
        OperationalError: an output cannot be written; no one is then.
    """
    files = {
        "--markdown": to_path(options.markdown),
        "--junit": to_path(options.junit),
        "--json": to_path(options.json_file),
    }
    folder, baseline, planted = RunFolder(Path(options.run)), Path(options.against), to_path(options.planted)
    rules = GateRules(
        severity_guard=read_severity(options.severity_guard),
        max_hpt=options.max_hpt,
        min_coverage=options.min_coverage,
        require_calibrated=options.require_calibrated,
        planted=planted,
    )
    check_outputs(files, inputs=[*folder.files, baseline, planted])
    result = gate_folder(folder, baseline, rules)
    write_results(result, files)
    return result


def gate_folder(folder: RunFolder, baseline: Path, rules: GateRules) -> GateResult:
    """Hold a run folder against a baseline file or another run folder, and quote what became worse.

    Raises:
        UsageError: one of them is neither, or is damaged.
    """
    return add_quotations(judge_run(summarize_run(folder), read_summary(baseline), rules), folder)


def write_results(result: GateResult, files: Mapping[str, Path | None]) -> None:
    """Write the files that were asked for, all or none.

    Args:
        result: what is written.
        files: flag → file; None: it was not given.

    Raises:
        OperationalError: one cannot be written.
    """
    texts: dict[Path, str] = {}
    for flag, path in files.items():
        if path is not None:
            texts[path] = _RENDERERS[flag](result)
    if texts:
        write_together(texts)


def _render_json(result: GateResult) -> str:
    return f"{result.model_dump_json(indent=2)}\n"


_RENDERERS: dict[str, Callable[[GateResult], str]] = {
    "--markdown": render_markdown,
    "--junit": render_junit,
    "--json": _render_json,
}
"""Flag → what makes the text of its file."""

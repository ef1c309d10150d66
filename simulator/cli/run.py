"""Commands that make conversations and judge them: run, detect, judge, branch, chat."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.cli.console import open_in_browser, print_json, print_lines, print_warnings
from hallulab.simulator.cli.options import AsJson, expand_options
from hallulab.simulator.options.commands import (
    BranchOptions,
    ChatOptions,
    DetectOptions,
    JudgeOptions,
    RunOptions,
)


@expand_options
def run(options: RunOptions, as_json: AsJson = False) -> None:
    """Simulate conversations, judge every reply, and report.

    Arguments after `--` are passed on to the model server.
    """
    from hallulab.agents.progress import showing

    with showing("loading hallulab", options.quiet):
        from hallulab.simulator.cli.report import show_report
        from hallulab.simulator.decide.run import run_from_options
        from hallulab.simulator.engine.command import load_asked_experiment
        from hallulab.simulator.metrics.failures import find_failed_conversations, require_success
        from hallulab.simulator.report.estimate import estimate, print_estimate

    for flag, given in (("--estimate", options.estimate), ("--json", as_json)):
        if options.no_judge and given:
            raise UsageError(f"--no-judge prints the run folder only. Leave out {flag}, or --no-judge.")
    running = run_from_options(options, partial(tell_forecast, options))
    folder, scenario = run_until_stopped(running)
    if not options.no_judge and not options.estimate:
        show_report(folder, as_json, scenario, quiet=options.quiet)
        return
    found = find_failed_conversations(folder)
    print_warnings(found)
    if options.no_judge:
        print_lines(folder.path)  # alone on standard output, for scripts
    require_success(found)
    if options.estimate:
        made = estimate(folder, load_asked_experiment(options), scenario)
        if as_json:
            print_json(f"{made.model_dump_json(indent=2)}\n")
        else:
            print_estimate(made, folder)


def tell_forecast(options: RunOptions) -> None:
    """Print on standard error what a run will take, by its plan and an earlier run with the same model.

    Nothing is printed for a quiet run, and for a replay, which asks nobody.
    """
    from hallulab.scenarios.packs.pack_files import load_without_documents
    from hallulab.simulator.engine.command import load_experiment_to_play
    from hallulab.simulator.records.choices import ensure_model
    from hallulab.simulator.records.outputs import RUNS
    from hallulab.simulator.report.forecast import find_past_run, forecast

    if options.quiet or options.replay is not None:
        return
    experiment = ensure_model(load_experiment_to_play(options))
    folders = [*RUNS.glob("*"), *([] if options.out is None else [Path(options.out)])]
    past = find_past_run(experiment, folders)
    scenario = load_without_documents(experiment.scenario)
    print_lines(forecast(experiment, scenario, not options.no_judge, past).describe(), err=True)


@expand_options
def detect(options: DetectOptions, as_json: AsJson = False) -> None:
    """Judge the turns of a saved run that lack a verdict, and report.

    Arguments after `--` are passed on to the model server.
    """
    from hallulab.agents.progress import showing

    with showing("loading hallulab", options.quiet):
        from hallulab.simulator.cli.report import show_report
        from hallulab.simulator.engine.command import detect_from_options

    folder, scenario = run_until_stopped(detect_from_options(options))
    show_report(folder, as_json, scenario, quiet=options.quiet)


@expand_options
def judge(options: JudgeOptions, as_json: AsJson = False) -> None:
    """Judge your own chats: import them, detect hallucinations, and write the page, in one command.

    Without --model and --base-url no model is asked, and `combined` judges. Arguments after `--` are passed
    on to the model server.
    """
    from hallulab.agents.progress import showing

    with showing("loading hallulab", options.quiet):
        from hallulab.simulator.cli.data import tell_import
        from hallulab.simulator.cli.report import show_report
        from hallulab.simulator.engine.command import detect_from_options
        from hallulab.simulator.engine.judging import WORTH, plan_judging
        from hallulab.simulator.records.importing import import_from_options
        from hallulab.simulator.show.terminal import build_console, print_line

    plan = run_until_stopped(plan_judging(options, Path(str(options.chats))))
    folder, format, counts, reading = run_until_stopped(
        import_from_options(plan.imports, quiet=options.quiet)
    )
    tell_import(counts, format, reading, folder.path, err=as_json)
    with plan.naming_continuation():
        folder, scenario = run_until_stopped(detect_from_options(plan.detects))
        show_report(folder, as_json, scenario, quiet=options.quiet)
    if plan.asks_no_model and as_json:
        print_lines(WORTH, err=True)
    elif plan.asks_no_model:
        print_line(build_console(), WORTH)
    if not as_json:
        open_in_browser(folder.page)


@expand_options
def branch(options: BranchOptions, as_json: AsJson = False) -> None:
    """Give chatbots the same messages after the same histories, taken from a finished run, and report.

    Each gives one reply, which is judged. The report sets these replies beside those of the run.
    Arguments after `--` are passed on to the model server.
    """
    from hallulab.simulator.cli.report import show_report
    from hallulab.simulator.engine.command import branch_from_options

    folder, scenario = run_until_stopped(branch_from_options(options))
    show_report(folder, as_json, scenario, quiet=options.quiet)


@expand_options
def chat(options: ChatOptions) -> None:
    """Talk to a chatbot of an experiment yourself; detectors judge each reply.

    The conversation is a run folder like any other. Arguments after `--` are passed on to the model server.
    """
    from hallulab.simulator.chat.terminal import chat_from_options

    folder = run_until_stopped(chat_from_options(options, print_lines))
    if folder is None:
        print_lines("nothing was said, so nothing is saved.")
    else:
        print_lines(f"saved: {folder}")

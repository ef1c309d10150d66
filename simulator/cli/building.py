"""`hallulab build`: make labelled data instead of downloading it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.agents.machine.stopping import run_until_stopped
from hallulab.simulator.bench.wrong_answers import Wrong
from hallulab.simulator.cli.options import ModelOptions, RecordingOptions, expand_option_groups
from hallulab.simulator.cli.running import build_settings, collect_flags
from hallulab.simulator.cli.saying import print_lines

if TYPE_CHECKING:
    from hallulab.scenarios.labelled import LabelledData

Out = Annotated[Path, typer.Option(help="JSON-lines file to write.")]


@expand_option_groups
def hotpotqa_derived(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="Folder that holds HotpotQA's distractor setting.")],
    out: Out,
    models: ModelOptions,
    recording: RecordingOptions,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many questions.")] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the choice that --limit makes, of the answers drawn, and sampled.")
    ] = 0,
    wrong: Annotated[
        Wrong,
        typer.Option(help="Wrong answers: made up, or out of a passage that does not answer the question."),
    ] = "invented",
    both: Annotated[
        bool, typer.Option("--both", help="Both answers of each question; by default one at random.")
    ] = False,
) -> None:
    """Write HotpotQA's questions with right answers and with wrong ones of the model.

    What stands after `--` is passed on to the model server.
    """
    from hallulab.simulator.bench.building import BuildSettings, build_command
    from hallulab.simulator.bench.hotpotqa_derived import list_left_out
    from hallulab.simulator.experiment.config import load_experiment

    experiment = load_experiment(models.config, collect_flags(models))
    chosen = BuildSettings(
        data, models.config, out, limit, seed, wrong, both, build_settings(context, recording)
    )
    derived = run_until_stopped(build_command(chosen, experiment))
    _print_written(derived.data, out)
    for line in list_left_out(derived):
        print_lines(line, err=True)


def audit_corpus(out: Out) -> None:
    """Write EvidenceChain's audit corpus, which `hallulab bench audit-corpus` generates, too."""
    from hallulab.scenarios.datasets.audit_corpus import generate
    from hallulab.simulator.bench.labelled_file import write_labelled
    from hallulab.simulator.runs.outputs import check_outputs

    check_outputs({"--out": out})
    replies = generate()
    write_labelled(out, replies)
    _print_written(replies, out)


def _print_written(replies: LabelledData, out: Path) -> None:
    from hallulab.scenarios.text.wording import choose_noun

    written = f"{len(replies)} {choose_noun(len(replies), 'reply', 'replies')} written to {out}"
    print_lines(f"{written}, {sum(reply.hallucinated for reply in replies)} hallucinated")

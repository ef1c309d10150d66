"""`hallulab serve`."""

from __future__ import annotations

from typing import Annotated

import typer


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
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Serve a model with vLLM on loopback until Ctrl-C. What stands after `--` is passed on to vLLM."""
    from hallulab.agents.serving.command import serve_command

    serve_command(
        model, port=port, replicas=replicas, prepare_only=prepare, extra_flags=context.args, quiet=quiet
    )

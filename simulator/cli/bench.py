"""`hallulab bench`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from simulator.cli.options import Detectors, ModelOptions, RecordingOptions, grouped, names
from simulator.cli.running import settings


@grouped
def bench(
    context: typer.Context,
    dataset: Annotated[str, typer.Argument(help="A labelled data set: begin, or a JSONL file of yours.")],
    models: ModelOptions,
    recording: RecordingOptions,
    data: Annotated[Path | None, typer.Option(help="Folder that holds the data set's files.")] = None,
    detectors: Detectors = None,
    source: Annotated[str | None, typer.Option(help="Part of the data set (begin: wow, cmu, tc).")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many replies.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the choice that --limit makes.")] = 0,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write the rows into this file.")] = None,
) -> None:
    """Measure detectors on labelled data, next to the lexical floor.

    What stands after `--` is passed on to the model server.
    """
    from simulator.bench.command import BenchSettings, bench_command

    chosen = BenchSettings(
        dataset=dataset,
        data=data,
        source=source,
        detectors=names(detectors),
        limit=limit,
        seed=seed,
        config=models.config,
        flags={
            "model": models.model,
            "base_url": models.base_url,
            "api_key_env": models.api_key_env,
            "concurrency": models.concurrency,
            "timeout": models.timeout,
        },
        run=settings(context, recording),
        json_file=as_json,
    )
    asyncio.run(bench_command(chosen))

"""Make the vectors of a run's documents before the first search."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hallulab.agents.retrieval.knowledge import KnowledgeBase


async def build_knowledge(knowledge: KnowledgeBase, quiet: bool) -> None:
    """Make the vectors now, not in the first search."""
    from hallulab.agents.serving.terminal import shown_progress

    with shown_progress(quiet) as on_progress:
        await asyncio.to_thread(knowledge.build, on_progress)


@asynccontextmanager
async def start_embedding(knowledge: KnowledgeBase, starts: bool) -> AsyncIterator[asyncio.Task[None] | None]:
    """Make the vectors while a model server starts here and shows its progress; yield what to wait for.

    Args:
        starts: whether a server is started; if not, nothing is made and None is yielded.
    """
    task = asyncio.create_task(build_knowledge(knowledge, quiet=True)) if starts else None
    try:
        yield task
    finally:
        # If the server did not start, its error is the one to tell.
        if task is not None and not task.done():
            task.cancel()

"""The options of `hallulab init pack`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from hallulab.simulator.options.groups import STRICT, Flag, ModelOptions, RecordingOptions, StrPath

PERSONAS = 20
"""Personas that `hallulab init pack` writes from documents where no number is given."""
GOALS = "70/20/10"
"""Per cent of their goals that the documents answer, answer in part, do not answer, likewise."""


@dataclass(frozen=True)
class InitOptions(ModelOptions, RecordingOptions):
    """Options of `hallulab init pack`."""

    directory: Annotated[StrPath | None, Flag("A new or empty folder.", argument=True, metavar="DIR")] = None
    _: KW_ONLY
    documents: Annotated[
        StrPath | None, Flag("Folder of your documents: a model writes the pack's personas from them.")
    ] = None
    strict: Annotated[bool, STRICT] = False
    from_chats: Annotated[
        StrPath | None,
        Flag("Chats of real users, as `hallulab import` reads them: one persona of each.", metavar="FILE"),
    ] = None
    personas: Annotated[
        int | None,
        Flag(
            f"Personas to write from the documents, {PERSONAS} by default; with --from-chats, how many "
            "chats are read, all by default."
        ),
    ] = None
    goals: Annotated[
        str | None,
        Flag(
            f"Per cent of goals that the documents answer, answer in part, do not answer; {GOALS} by default."
        ),
    ] = None
    seed: Annotated[int | None, Flag("Seed of what is drawn.")] = None
    summarize: Annotated[
        StrPath | None,
        Flag(
            "Write nothing, and print the `summary` of a persona in the situation of this chat's user: text "
            "with lines `User: …` and `Assistant: …`, or messages as .json or .jsonl.",
            metavar="FILE",
        ),
    ] = None
    scenario: Annotated[
        str | None, Flag("The pack that the chat of --summarize belongs to: a name, or a path.")
    ] = None

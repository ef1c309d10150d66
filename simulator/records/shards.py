"""Journals in shards: a run of many conversations has sixteen journals of each kind, chosen by the persona.

All conversations of a persona, and the verdicts on them, are in one shard. So a shard can be counted alone:
comparisons of chatbots are paired by persona, and intervals resample personas.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from hallulab.scenarios.files.json_text import LineWriter
from hallulab.scenarios.transcript import Conversation, Verdict

SHARDS = 16
LARGEST = 100_000
"""Most conversations, as planned, for which a new run has one journal of each kind."""


def choose_shard(persona: str) -> int:
    """Return the number of the shard that a persona's conversations are in.

    >>> choose_shard("asha"), choose_shard("ravi")
    (10, 4)
    """
    return int.from_bytes(hashlib.sha256(persona.encode()).digest()[:8]) % SHARDS


def list_shards(journal: Path) -> list[Path]:
    """Return the paths of all shards of a journal, which need not exist.

    >>> list_shards(Path("verdicts.jsonl"))[9].name
    'verdicts-09.jsonl'
    """
    return [journal.with_name(f"{journal.stem}-{number:02d}{journal.suffix}") for number in range(SHARDS)]


class JournalFiles:
    """The two journals of a run, open for appending, each in one file or in shards.

    Args:
        conversations: where the journal of conversations is, were it one file.
        verdicts: likewise.
        in_shards: whether each is in shards.
        held: identifiers of the conversations that are there, and their personas; only shards ask for them.

    Raises:
        OperationalError: a file cannot be opened or written.
    """

    def __init__(
        self, conversations: Path, verdicts: Path, in_shards: bool, held: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._shards = {id: choose_shard(persona) for id, persona in held} if in_shards else None
        with ExitStack() as files:
            self._conversations, self._verdicts = (
                [files.enter_context(LineWriter(file)) for file in own]
                for own in (list_shards(path) if in_shards else [path] for path in (conversations, verdicts))
            )
            self._open = files.pop_all()

    def add_conversation(self, conversation: Conversation) -> None:
        """Append a conversation."""
        shard = 0
        if self._shards is not None:
            shard = self._shards[conversation.id] = choose_shard(conversation.persona)
        self._conversations[shard].append(conversation.model_dump_json())

    def add_verdict(self, verdict: Verdict) -> None:
        """Append a verdict on a conversation that is there."""
        shard = 0 if self._shards is None else self._shards[verdict.conversation]
        self._verdicts[shard].append(verdict.model_dump_json())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

"""openai's client, less one step that costs a third of the runner's time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions


class QuickOpenAI(AsyncOpenAI):
    """openai's client, which sends messages as they are.

    It looks at every part of every message, against every type that it may have, for fields that go by
    another name on the wire. Messages have none, and prompts with examples have dozens of them. `extra_body`
    is sent without being looked at.
    """

    @cached_property
    def chat(self) -> AsyncChat:
        """See `AsyncOpenAI.chat`."""
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(  # type: ignore[override]
        self, *, messages: Iterable[Any], extra_body: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        body = {"messages": list(messages), **(extra_body or {})}
        return await super().create(messages=[], extra_body=body, **options)

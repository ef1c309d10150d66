"""Run a user's bot in its own process, inside the main loop `agents/machine/worker_loop.py`.

Needs the standard library only; runs on Python 3.9 and later.

| from | message |
|---|---|
| us, first | `{"kind": "callable" or "autogen", "target": "module:attribute", "here": DIR}` |
| worker | `{"ready": true}`, or `{"fatal": "why"}` |
| us | `{"id", "dialogue": [{"role", "content"}, …]}` |
| worker | `{"id", "answer": VALUE}`, or `{"id", "error": "Type: message"}` |

`VALUE` is what the bot returned. An object that JSON lacks becomes `{"python object": repr, "type": class}`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from __main__ import reason_of  # the main loop

LONGEST_REPR = 10_000
"""Characters kept of an object that is no reply."""

HANDOFF = "transfer_to_"
"""Beginning of the names of AutoGen's handoff tools, whose results are no evidence."""


class NoBot(Exception):
    """The target is no bot; `sentence` says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def prepare(configuration: dict[str, Any]) -> Any:
    """Import the bot and return what the target names. Forks have it then (`agents/machine/fork_loop.py`).

    Raises:
        NoBot: there is nothing, or it cannot be called.
    """
    target = configuration["target"]
    found = find(target, configuration["here"])
    if configuration["kind"] == "callable" and not callable(found):
        raise NoBot(f"{target}: is a {type(found).__name__}, which cannot be called.")
    return found


class Worker:
    """The bot, for the main loop.

    Raises:
        NoBot: the target is no bot.
    """

    def __init__(self, configuration: dict[str, Any], ask: object) -> None:
        # One loop for all replies, so that objects bound to it stay usable.
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        found = prepare(configuration)
        if configuration["kind"] == "callable":
            self._bot: Callable[[Any], Any] = found
        else:
            self._bot = AutoGen(self._agent(configuration["target"], found)).reply

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the bot's answer to a dialogue."""
        return {"answer": make_plain(keep_essentials(self._done(self._bot(request["dialogue"]))))}

    def _done(self, value: Any) -> Any:
        """Return the value; await it if it is awaitable."""

        async def wait() -> Any:
            return await value

        return self._loop.run_until_complete(wait()) if inspect.isawaitable(value) else value

    def _agent(self, target: str, found: Any) -> Any:
        made = found
        if not is_agent(made) and callable(made):
            try:
                made = self._done(made())
            except BaseException as error:
                raise NoBot(f"{target}: makes no agent (it raised {reason_of(error)}).") from error
        if not is_agent(made):
            what = f"is a {type(found).__name__}" if made is found else f"makes a {type(made).__name__}"
            raise NoBot(f"{target}: {what}, not an AutoGen agent or team, or a function that makes one.")
        return made


class AutoGen:
    """An AutoGen agent or team, which remembers the conversation itself."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def reply(self, dialogue: list[dict[str, str]]) -> object:
        """Return its last message, with what its tools and memories gave it since the user's message."""
        result = await self._agent.run(task=dialogue[-1]["content"])
        said = result.messages[1:]  # the first is the user's
        replies = [each for each in said if hasattr(each, "to_model_message") and each.type != "StopMessage"]
        passages = [passage for each in said for passage in read_by(each)]
        text = replies[-1].to_text() if replies else None
        return {"reply": text, "passages": passages} if passages else text


def read_by(event: Any) -> list[dict[str, str]]:
    """Return the passages in an AutoGen message: results of tools and contents of memories."""
    if event.type == "ToolCallExecutionEvent":
        results = [each for each in event.content if not each.is_error and not each.name.startswith(HANDOFF)]
        found = [{"text": each.content, "document": each.name} for each in results]
    elif event.type == "MemoryQueryEvent":
        found = [{"text": each.content, "document": "memory"} for each in event.content]
    else:
        return []
    return [each for each in found if isinstance(each["text"], str) and each["text"].strip()]


def is_agent(value: object) -> bool:
    """Return whether it has the methods of an AutoGen agent or team. AutoGen need not be installed."""
    if isinstance(value, type):
        return False
    return inspect.iscoroutinefunction(getattr(value, "run", None)) and hasattr(value, "run_stream")


def find(target: str, here: str) -> object:
    """Import `module:attribute`, with the working directory first, as `python -m` does.

    Raises:
        NoBot: there is no such module or attribute, or it cannot be imported.
    """
    module_name, attribute = target.split(":")
    if module_name not in sys.modules:  # a fork has the path, too, unless the bot has changed it
        sys.path.insert(0, here)
    # Bytecode knows its file by size and second. A bot edited twice within a second would run as it was.
    sys.dont_write_bytecode = True
    try:
        module = importlib.import_module(module_name)
    except BaseException as error:
        reason = reason_of(error)
        raise NoBot(f"{target}: cannot import {module_name} from {here} ({reason}).") from error
    found = getattr(module, attribute, None)
    if found is None:
        raise NoBot(f"{target}: the module {module_name} has no attribute {attribute!r}.")
    return found


def keep_essentials(value: object) -> object:
    """Drop the values of a dict except its reply and passages; return other answers unchanged."""
    if not isinstance(value, Mapping):
        return value
    return {key: value[key] if key in ("reply", "passages") else None for key in value}


def make_plain(value: object) -> object:
    """Convert a value to JSON's types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping):
        return {str(key): make_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [make_plain(item) for item in value]
    return {"python object": repr(value)[:LONGEST_REPR], "type": type(value).__name__}

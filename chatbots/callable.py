"""A bot under test that is a Python callable: `module:attribute`, from the working directory or installed.

It is called with the dialogue, a list of `{"role": "user" | "assistant", "content": str}`, and returns the
reply, or `{"reply": str, "passages": [...]}` with what it read: texts, or `{"text", "id", "document"}`.
It may be async; if it is not, it runs in a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from pydantic import Field, ValidationError

from agents.foreign import as_called, require_failure
from agents.models.redaction import without_keys
from chatbots.outside import as_said, evidence_for
from chatbots.pipeline import failures_as_chatbot_errors
from chatbots.protocol import ChatbotContext, ChatbotError, Reply
from scenarios.errors import UsageError
from scenarios.options import read_options
from scenarios.plugins import reason_of
from scenarios.transcript import Frozen, Message, Passage

Dialogue = list[dict[str, str]]
"""What a callable is given."""


class CallableOptions(Frozen):
    """Where the callable is."""

    target: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`module:attribute`, such as `my_bot:answer`."""


class CallableBot:
    """Your own bot as a Python callable, named by the option `target` as `module:attribute`.

    Its model calls are its own: none are booked.

    Raises:
        UsageError: the option `target` is missing, has another form, or leads to nothing that can be called.
    """

    KIND = "callable"
    OPTIONS = CallableOptions
    PROMPTS = ()

    def __init__(self, context: ChatbotContext) -> None:
        self._context = context
        self._target = read_options(f"chatbot {self.KIND}", CallableOptions, context.options).target
        self._function = find_callable(self._target)

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        dialogue = [{"role": message.role, "content": message.text} for message in history]
        limit = self._context.models.timeout_s
        clock = asyncio.timeout(limit)
        try:
            async with clock:
                answer = await as_called(lambda: self._ask(dialogue))
        except BaseException as error:
            require_failure(error)
            if clock.expired():
                reason = f"{self._target} gave no reply within {limit:g} s (--timeout)."
            else:
                reason = f"{self._target} raised {reason_of(error)}"
            raise ChatbotError(reason) from error
        text, passages = read_answer(self._target, answer)
        if passages is not None:
            return Reply(text=text, passages=passages)
        with failures_as_chatbot_errors(()):
            query, found, step = await evidence_for(self._context, history)
        return Reply(text=text, query=query, passages=found, steps=(step,))

    async def _ask(self, dialogue: Dialogue) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(dialogue)
        answer = await _in_thread(self._function, dialogue)
        return await answer if inspect.isawaitable(answer) else answer


async def _in_thread(function: Callable[..., Any], dialogue: Dialogue) -> Any:
    """What the function returns, which a thread of its own calls. One that never returns does not keep the
    process alive, as a thread of the event loop's pool would."""
    result: Future[Any] = Future()
    result.set_running_or_notify_cancel()  # from now on nobody who stops waiting can cancel it

    def call() -> None:
        try:
            result.set_result(function(dialogue))
        except StopIteration:
            result.set_exception(RuntimeError("StopIteration"))  # no event loop passes that one on
        except BaseException as raised:  # noqa: BLE001 - whatever it is, it is raised where the answer is awaited
            result.set_exception(raised)

    threading.Thread(target=contextvars.copy_context().run, args=(call,), daemon=True).start()
    return await asyncio.wrap_future(result)


def find_callable(target: str) -> Callable[..., Any]:
    """Import `module:attribute`. The working directory comes first on the import path from then on, as with
    `python -m`, so that what the bot imports later is found too.

    Raises:
        UsageError: there is no such module or attribute, it cannot be imported, or it cannot be called.
    """
    module_name, attribute = target.split(":")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = reason_of(error)
        raise UsageError(f"{target}: cannot import {module_name} from {here} ({reason}).") from error
    function = getattr(module, attribute, None)
    if function is None:
        raise UsageError(f"{target}: the module {module_name} has no attribute {attribute!r}.")
    if not callable(function):
        raise UsageError(f"{target}: is a {type(function).__name__}, which cannot be called.")
    found: Callable[..., Any] = function
    return found


def read_answer(target: str, answer: object) -> tuple[str, tuple[Passage, ...] | None]:
    """Reply and passages of what a callable returned; None where it names no passages.

    Raises:
        ChatbotError: it is neither a text nor a dict with `reply`, or the reply is empty.
    """
    passages: object = None
    reply = answer
    if isinstance(answer, Mapping):
        reply, passages = answer.get("reply"), answer.get("passages")
    if not isinstance(reply, str):
        keys = sorted(map(str, answer)) if isinstance(answer, Mapping) else None
        returned = without_keys(repr(answer))[:80] if keys is None else f"a dict with {keys}"
        raise ChatbotError(f'{target} returned {returned}, not a text or {{"reply": text, "passages": […]}}.')
    text = as_said(target, reply)
    if passages is None:
        return text, None
    if isinstance(passages, str | Mapping) or not isinstance(passages, Sequence):
        raise ChatbotError(f"{target}: `passages` is a {type(passages).__name__}, not a list.")
    read = tuple(_passage(target, number, passage) for number, passage in enumerate(passages))
    return text, read


def _passage(target: str, number: int, value: object) -> Passage:
    fields: dict[str, Any] = {"id": f"passage#{number}", "document": "passage"}
    if isinstance(value, str):
        fields["text"] = value
    elif isinstance(value, Mapping):
        fields.update(value)
    else:
        raise ChatbotError(f"{target}: passage {number} is a {type(value).__name__}, not a text or a dict.")
    cleaned = {name: without_keys(item) if isinstance(item, str) else item for name, item in fields.items()}
    try:
        return Passage.model_validate(cleaned)
    except (ValidationError, TypeError) as error:
        raise ChatbotError(
            f"{target}: passage {number} is no passage (text, id, document, score, topic)."
        ) from error

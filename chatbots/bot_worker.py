"""Run a user's bot in its own process, inside the main loop `agents/machine/worker_loop.py`.

Needs the standard library only; runs on Python 3.9 and later.

| from | message |
|---|---|
| us, first | `{"kind": "callable" or "autogen", "target": "module:attribute", "here": DIR, …}` |
| worker | `{"ready": true}`, or `{"fatal": "why"}` |
| us | `{"id", "dialogue": [{"role", "content"}, …]}` |
| worker | `{"id", "answer": VALUE}`, or `{"id", "error": "Type: message"}` |

If the first message has `"tells_imports": true`, the first answer has `imported`: the modules that it needed.
`VALUE` is what the bot returned. An object that JSON lacks becomes `{"python object": repr, "type": class}`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
import os
import sys
import threading
from collections import UserString
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any, SupportsFloat

from __main__ import reason_of  # the main loop

LONGEST_REPR = 10_000
"""Characters kept of an object that is no reply."""

ENDING_SECONDS = 1.0
"""Time for a thread to end that has nothing left to do. One that stays is found, and nothing is forked."""

HANDOFF = "transfer_to_"
"""Beginning of the names of AutoGen's handoff tools, whose results are no evidence."""


class NoBot(Exception):
    """The target is no bot; `sentence` says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def prepare(configuration: dict[str, Any]) -> None:
    """Import the bot, and warm its client, for all forks at once (`agents/machine/fork_loop.py`).

    Raises:
        NoBot: see `import_bot`.
    """
    import_bot(configuration)
    openai = sys.modules.get("openai")
    if openai is not None:
        with suppress(Exception):  # another version: each fork does by itself what it needs
            asyncio.run(warm_client(openai))
        for thread in threading.enumerate():  # which the client has started, and ends by itself
            if thread is not threading.main_thread():
                thread.join(ENDING_SECONDS)


def import_bot(configuration: dict[str, Any]) -> Any:
    """Return what the target names.

    Raises:
        NoBot: there is nothing, or it cannot be called.
    """
    target = configuration["target"]
    found = find(target, configuration["here"])
    if configuration["kind"] == "callable":
        check_callable(target, found)
    return found


def check_callable(target: str, found: Any) -> None:
    """Check that something can be called with a dialogue.

    Raises:
        NoBot: it cannot.
    """
    if not callable(found):
        raise NoBot(f"{target}: is a {type(found).__name__}, which cannot be called.")
    if inspect.isclass(found):
        raise NoBot(f"{target}: is a class; name a function, or an object of the class that can be called.")
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # of a function in C, or an object that says something odd
        return
    try:
        signature.bind([])
    except TypeError as error:
        raise NoBot(f"{target}: cannot be called with the dialogue alone ({error}).") from error


async def warm_client(openai: Any) -> None:
    """Have the openai client ask a server of ours: at the first answer it imports parts and builds types.

    That takes 50 ms of a processor.
    """
    httpx = sys.modules.get("httpx2") or sys.modules["httpx"]  # openai moved from this to that
    message = {"role": "assistant", "content": "", "refusal": None, "tool_calls": None}
    choices = [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}]
    answer = {"id": "", "object": "chat.completion", "created": 0, "model": "", "choices": choices}
    answer["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    body = json.dumps(answer)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"

    async def respond(asked: asyncio.StreamReader, told: asyncio.StreamWriter) -> None:
        await asked.readuntil(b"{}")
        told.write(f"{head}{body}".encode("ascii"))
        told.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, httpx.AsyncClient(verify=False, trust_env=False) as http:
        client = openai.AsyncOpenAI(
            base_url=place, api_key="none", http_client=http, max_retries=0, timeout=10
        )
        # Named, it is imported; not called, since a tracer of the user's may have wrapped its `create`.
        _ = client.chat.completions
        await client.post("/chat/completions", cast_to=openai.types.chat.ChatCompletion, body={})
        asked = openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming
        await openai._utils.async_maybe_transform({"messages": [message], "model": ""}, asked)


class Worker:
    """The bot, for the main loop.

    Raises:
        NoBot: the target is no bot.
    """

    def __init__(self, configuration: dict[str, Any], ask: object) -> None:
        # One loop for all replies, so that objects bound to it stay usable.
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        found = import_bot(configuration)
        if configuration["kind"] == "callable":
            self._bot: Callable[[Any], Any] = found
        else:
            self._bot = AutoGen(self._agent(configuration["target"], found)).reply

        self._known = frozenset(sys.modules) if configuration.get("tells_imports") else None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the bot's answer to a dialogue."""
        answer = make_plain(keep_essentials(open_object(self._done(self._bot(request["dialogue"])))))
        known, self._known = self._known, None
        return {"answer": answer} if known is None else {"answer": answer, "imported": list_imported(known)}

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


def list_imported(known: frozenset[str]) -> list[str]:
    """Return the modules that libraries have imported since then: parts of those that were known.

    A library that the bot imports later, perhaps after it has set something, is left to it.
    """
    roots = {name.partition(".")[0] for name in known}
    new = [name for name in list(sys.modules) if name not in known and name.partition(".")[0] in roots]
    files = {name: str(getattr(sys.modules[name], "__file__", "")) for name in new}
    return [name for name in new if "site-packages" in files[name] or "dist-packages" in files[name]]


class AutoGen:
    """An AutoGen agent or team, which remembers the conversation itself."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def reply(self, dialogue: list[dict[str, str]]) -> object:
        """Return its last message, with what its tools and memories gave it since the user's message."""
        result = await self._agent.run(task=dialogue[-1]["content"])
        said = result.messages[1:]  # the first is the user's
        replies = [each for each in said if hasattr(each, "to_model_message")]
        # Whoever only says that it stops says so in its reply; else the reply was said before.
        replies = [each for each in replies if each.type != "StopMessage"] or replies
        passages = [passage for each in said for passage in read_by(each)]
        if not replies:
            return None
        text, own = read_reply(replies[-1])
        passages = passages if own is None else [*passages, *own]
        return {"reply": text, "passages": passages} if passages or own is not None else text


def read_reply(message: Any) -> tuple[Any, Any]:
    """Return the text of an AutoGen message, and the passages in it; None: it names none.

    The text of a structured message is its field `reply`, or its only field that is a text.
    """
    content = getattr(message, "content", None)
    dump = getattr(content, "model_dump", None)
    if not callable(dump):
        return message.to_text(), None
    fields = dump()
    texts = [value for value in fields.values() if isinstance(value, str)]
    reply = fields.get("reply", texts[0] if len(texts) == 1 else message.to_text())
    passages = fields.get("passages")
    return reply, passages if isinstance(passages, list) else None


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
    stem, _, suffix = module_name.rpartition(".")
    if stem and suffix in ("py", "ipynb"):
        what = f"name the module: `{stem}:{attribute}`" if suffix == "py" else "put it into a file: my_bot.py"
        raise NoBot(f"{target}: a bot is a name in a module, not in a file with its suffix; {what}.")
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


def open_object(value: Any) -> object:
    """Return an object that is an answer as its text or as a dict; others unchanged.

    Such are objects with a `reply`, such as dataclasses and pydantic's; messages of LangChain, with a
    `content`; and responses of LlamaIndex, with a `response` and `source_nodes`.
    """
    if isinstance(value, (str, Mapping)):
        return value
    if isinstance(getattr(value, "response", None), str) and hasattr(value, "source_nodes"):
        return {"reply": value.response, "passages": list(value.source_nodes or ())}
    if isinstance(getattr(value, "reply", None), str):
        # Its fields tell a misnamed one; those of a property or of slots stand in no dict.
        passages = getattr(value, "passages", None)
        return {**list_fields(value), "reply": value.reply, "passages": passages}
    return open_message(value)


def open_message(value: Any) -> Any:
    """Return the text of a message of LangChain or LlamaIndex that a model wrote; other values unchanged."""
    kind = getattr(value, "type", "")
    if not type(value).__name__.endswith(("Message", "MessageChunk")) or kind in ("human", "system", "tool"):
        return value
    content = getattr(value, "content", None)
    if not isinstance(content, list):
        return content if isinstance(content, str) else value
    texts = [each.get("text") if isinstance(each, Mapping) else each for each in content]
    return "".join(each for each in texts if isinstance(each, str))  # others are thoughts, calls, pictures


def list_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a named tuple, a dataclass, a model of pydantic's; none of others."""
    named = getattr(value, "_asdict", None)
    return dict(named() if callable(named) else getattr(value, "__dict__", {}))


def keep_essentials(value: object) -> object:
    """Drop the values of a dict except its reply and passages; return other answers unchanged."""
    if not isinstance(value, Mapping):
        return value
    kept = {key: value[key] if key in ("reply", "passages") else None for key in value}
    if "reply" in kept:
        kept["reply"] = open_message(kept["reply"])
    passages = kept.get("passages")
    if isinstance(passages, (list, tuple)):
        kept["passages"] = [read_document(passage) for passage in passages]
    return kept


def read_document(value: Any) -> Any:
    """Return a document of LangChain, LlamaIndex, Haystack or one's own as a dict; others unchanged.

    The libraries need not be installed: their objects are known by what they have. LangChain's have
    `page_content` and `metadata`. LlamaIndex's have a `node` and perhaps a `score`, or are such a node, which
    has `get_content` and `metadata`. Others have a `text` or `content`. A pair has a document and its score.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], SupportsFloat):
        return [read_document(value[0]), value[1]]
    own = list_fields(value) if hasattr(value, "_asdict") else {}
    if isinstance(value, (str, Mapping, Sequence)) and not own:
        return value
    node = getattr(value, "node", value)
    text = getattr(value, "page_content", None)
    if text is None and callable(getattr(node, "get_content", None)):
        text = node.get_content()
    if text is None:
        own = own or list_fields(value)
        text = own.pop("text", None) or own.pop("content", None)
    if not isinstance(text, str):
        return value
    metadata = getattr(node, "metadata", None) or getattr(node, "meta", None)
    fields = {**own, **metadata} if isinstance(metadata, Mapping) else own
    about = {key: make_plain(item) for key, item in fields.items() if isinstance(item, (str, os.PathLike))}
    found = {"text": text, "metadata": about}
    name = getattr(node, "node_id", None) or getattr(value, "id", None)
    if isinstance(name, str) and name:
        found["id"] = name
    score = getattr(value, "score", None)
    return {**found, "score": float(score)} if isinstance(score, SupportsFloat) else found


def make_plain(value: object) -> object:
    """Convert a value to JSON's types."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, UserString):  # a sequence of such again
        return str(value)
    if isinstance(value, Real) and math.isfinite(value):  # numpy's, too
        return float(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): make_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [make_plain(item) for item in value]
    return {"python object": repr(value)[:LONGEST_REPR], "type": type(value).__name__}

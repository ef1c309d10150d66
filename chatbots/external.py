"""Your own bot: behind an OpenAI-compatible endpoint, a Python callable, or an AutoGen agent or team.

A bot behind an endpoint gets the whole dialogue and answers. The others are `module:attribute`, from the
working directory or installed. A callable, perhaps async, gets the dialogue, a list of `{"role": "user" |
"assistant", "content": str}`, and returns the reply, or `{"reply": str, "passages": [...]}` with what it
read: texts, or `{"text", "id", "document"}`. An AutoGen agent or team, or a function that makes one, gets the
user's messages one by one; its last message is the reply, and outputs of its tools and contents of its
memories since the user's message are the passages. Each conversation has its own process, so the bot's state
belongs to one conversation (`hallulab.chatbots.bot_process`).
"""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from hallulab.agents.concurrency import run_in_daemon_thread
from hallulab.agents.models.complaints import put_in_one_line
from hallulab.agents.models.endpoints import BaseUrl, Endpoint
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.models.session import Session
from hallulab.agents.models.wire_settings import (
    ConversationMark,
    Extra,
    Headers,
    Query,
    SessionHeader,
    SessionPlace,
    Thoughts,
    WireSettings,
    collect_settings,
)
from hallulab.chatbots.bot_process import Bot, BotProcess, prepare_bot
from hallulab.chatbots.evidence import leave_evidence
from hallulab.chatbots.passages import FOREIGN, find_misnamed, read_citations, read_passages
from hallulab.chatbots.pipeline import failures_as_chatbot_errors, format_chat, turn_seed
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError, Reply, validate_reply
from hallulab.scenarios.components import LeadsTo, read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.transcript import Frozen, Message, Passage, Step


class CallableOptions(Frozen):
    """Where the bot is, and which Python runs it."""

    target: Annotated[str, LeadsTo("code")] = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    """`module:attribute`, such as `my_bot:answer`."""
    python: Annotated[str | None, LeadsTo("code")] = Field(default=None, min_length=1)
    """The Python that runs it, such as `.venv/bin/python`; None: ours."""


class CallableBot:
    """Your own bot as a Python callable, named by the option `target` as `module:attribute`.

    Its model calls are not recorded in a ledger.

    Raises:
        UsageError: an option is unknown, missing or wrong, or the target cannot be called.
    """

    VERSION = 1
    SEARCHES = False
    ASKS_MODEL = False
    KIND: ClassVar[str] = "callable"
    OPTIONS = CallableOptions
    PROMPTS = ()

    def __init__(self, context: ChatbotContext) -> None:
        self._context = context
        options = read_options(f"chatbot {self.KIND}", CallableOptions, context.options)
        if options.target.startswith("__main__:"):
            raise UsageError(
                f"chatbot {self.KIND}: `{options.target}`: a bot runs in a process of its own, which does "
                "not know what a script or notebook defines. Put it into a file, such as my_bot.py, and name "
                f"`my_bot:{options.target.partition(':')[2]}`."
            )
        # Links are kept, because an environment's Python is one.
        python = expand_home(options.python or sys.executable).absolute()
        if not (is_file(python) and os.access(python, os.X_OK)):
            raise UsageError(
                f"chatbot {self.KIND}: option `python`: {python} is no program; name an interpreter, such as "
                ".venv/bin/python."
            )
        self._target = options.target
        self._bot = prepare_bot(Bot(self.KIND, options.target, str(python), os.getcwd()), context.models)
        self._process: BotProcess | None = None

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        dialogue = [{"role": message.role, "content": message.text} for message in history]
        process = self._process = self._process or BotProcess(self._bot)
        limit = self._context.models.timeout_s
        try:
            text, passages = read_answer(
                self._target, await run_in_daemon_thread(lambda: process.ask(dialogue, limit))
            )
        except BaseException:
            # The conversation has failed or the run is being stopped, so nobody waits for an answer.
            self._process = None
            threading.Thread(target=process.stop, daemon=True).start()
            raise
        if passages is not None:
            return Reply(text=text, passages=passages)
        query, steps = leave_evidence(history)
        return Reply(text=text, query=query, steps=steps)


def read_answer(target: str, answer: object) -> tuple[str, tuple[Passage, ...] | None]:
    """Return reply and passages of a callable's answer in JSON; None if it names no passages.

    Raises:
        ChatbotError: it is neither a text nor a dict with `reply`, or the reply is empty.
    """
    given = answer if isinstance(answer, Mapping) else {"reply": answer}
    reply, passages = given.get("reply"), given.get("passages")
    if not isinstance(reply, str):
        shown = str(given[FOREIGN]) if FOREIGN in given else repr(answer)
        is_dict = isinstance(answer, Mapping) and FOREIGN not in answer
        returned = f"a dict with {sorted(given)}" if is_dict else remove_keys(shown)[:80]
        raise ChatbotError(f'{target} returned {returned}, not a text or {{"reply": text, "passages": […]}}.')
    text = validate_reply(target, reply)
    if passages is None:
        if (misnamed := find_misnamed(given.keys() - {"reply", "passages"})) is not None:
            raise ChatbotError(f"{target} returned `{misnamed}`, which is not read. Call it `passages`.")
        return text, None
    return text, read_passages(target, passages)


class AutoGenBot(CallableBot):
    """Your own AutoGen agent or team, named by the option `target` as `module:attribute`.

    Raises:
        UsageError: an option is unknown, missing or wrong, or the target is no agent or team.
    """

    KIND: ClassVar[str] = "autogen"
    remembers: ClassVar[bool] = True


_ADDED = frozenset({*WireSettings.model_fields, "session", "stateful"})
"""Options that add something to requests, or leave something out."""


class EndpointOptions(Frozen):
    """Where the bot is, and what is sent to it."""

    model: str | None = None
    """With `base_url`: the endpoint's name of the bot. Without: a name under `models`; None: the experiment's
    model."""
    base_url: Annotated[BaseUrl | None, LeadsTo("address")] = None
    """The bot's OpenAI-compatible base URL, ending in `/v1`."""
    api_key_env: Annotated[str | None, LeadsTo("variable")] = None
    """Environment variable with the endpoint's key; only with `base_url`. `none`: no key is sent."""
    extra: Extra = Field(default_factory=dict)
    """Fields added to the body of every request, such as `reasoning_effort`; null leaves one out."""
    headers: Annotated[Headers, LeadsTo("header")] = Field(default_factory=dict)
    """Headers of every request; `${VARIABLE}` in a value stands for an environment variable."""
    query: Query = Field(default_factory=dict)
    """Parameters of the address of every request, such as `api-version`."""
    thoughts: Thoughts = 0
    """Tokens added to every limit, for a model that thinks before it answers."""
    system: str | None = None
    """A system prompt to send first, if the bot needs one."""
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """Sampling temperature; None: not sent, so the bot uses its own."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Limit of a reply in tokens; None: not sent."""
    session: SessionPlace | None = None
    """Where a conversation's id is sent: in the field `user` of the body, or in a header; None: nowhere."""
    stateful: bool = False
    """True if the bot keeps the conversation by that id and gets the last message alone."""

    @model_serializer(mode="wrap")
    def _leave_out_what_is_not_added(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Folders that are older than these options hold the same bot.
        return {name: value for name, value in handler(self).items() if value or name not in _ADDED}

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if self.base_url is not None and self.model is None:
            raise ValueError("with `base_url`, the option `model` says what the endpoint calls the bot")
        if self.base_url is None and self.api_key_env is not None:
            raise ValueError("`api_key_env` belongs to a `base_url`, which is not given")
        if self.base_url is None and (given := collect_settings(self).model_dump(exclude_defaults=True)):
            raise ValueError(f"`{next(iter(given))}` belongs to a `base_url`, which is not given")
        if self.session is None and self.stateful:
            raise ValueError(
                "a `stateful` bot must be told which conversation a message belongs to; say in `session` "
                "where: `user`, or {header: X-Session-Id}"
            )
        if self.session is not None and self.base_url is None:
            raise ValueError("`session` belongs to a `base_url`, which is not given")
        if self.session is not None and self.header is None and "user" in self.extra:
            raise ValueError("`session` and `extra` both set the field `user`; leave out one")
        if self.header is not None and collect_settings(self).names_header(self.header):
            raise ValueError(f"`session` and `headers` both set `{self.header}`; leave out one")
        return self

    @property
    def header(self) -> str | None:
        """The header that holds a conversation's id; None: there is none."""
        return self.session.header if isinstance(self.session, SessionHeader) else None


_MOST_CITED = 10
"""Addresses that a step names."""


class EndpointBot:
    """Your own bot behind an OpenAI-compatible endpoint (1 call a reply that we see).

    Raises:
        UsageError: an option is unknown or wrong, the experiment lacks the named model, or the endpoint's key
            is missing.
    """

    VERSION = 1
    SEARCHES = False
    KIND = "endpoint"
    OPTIONS = EndpointOptions
    PROMPTS = ()

    def __init__(self, context: ChatbotContext) -> None:
        self._context = context
        self._options = options = read_options(f"chatbot {self.KIND}", EndpointOptions, context.options)
        if options.base_url is not None and options.model is not None:
            where = options.model, options.base_url, options.api_key_env
            self._client = context.models.at(Endpoint(*where, collect_settings(options)))
        else:
            self._client = context.models.get(options.model or context.model)
        self._client.check_key()
        self._id = uuid.uuid4().hex
        self._has_replied = False

    @property
    def remembers(self) -> bool:
        """True if the bot may remember more of the conversation than it is sent."""
        return self._options.session is not None

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        options = self._options
        session = Session(
            self._context.models,
            "chatbot",
            turn_seed(self._context.seed, history),
            self._client,
            mark=self._mark(history),
        )
        instructed = options.stateful and self._has_replied
        messages = [ChatMessage("system", options.system)] if options.system and not instructed else []
        told = history[-1:] if options.stateful else history
        with failures_as_chatbot_errors(session.calls):
            answer = await session.answer(
                "reply",
                [*messages, *format_chat(told)],
                temperature=options.temperature,
                max_tokens=options.max_tokens,
            )
            self._has_replied = True
            name, calls = self._client.endpoint.model, tuple(session.calls)
            text = validate_reply(name, answer.text)
            passages, addresses = read_citations(name, answer.sources)
        if passages:
            return Reply(text=text, passages=passages, calls=calls)
        query, steps = leave_evidence(history)
        if addresses:
            cited = ", ".join(put_in_one_line(one) for one in addresses[:_MOST_CITED])
            steps = (
                Step(name="cited", text=f"Addresses without their texts are no passages: {cited}"),
                *steps,
            )
        return Reply(text=text, query=query, steps=steps, calls=calls)

    def _mark(self, history: Sequence[Message]) -> ConversationMark | None:
        """Return what tells the bot which conversation it is; None: it is not told."""
        options, context = self._options, self._context
        if options.session is None:
            return None
        said = [[message.role, message.text] for message in history]
        key = digest([context.conversation, context.seed, said])
        return ConversationMark(key, self._id, options.header, options.stateful)

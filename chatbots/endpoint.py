"""A bot under test behind an OpenAI-compatible endpoint: it gets the whole dialogue and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, model_validator

from hallulab.agents.models.endpoints import BaseUrl, Endpoint
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import ChatMessage
from hallulab.chatbots.pipeline import failures_as_chatbot_errors, format_chat, turn_seed
from hallulab.chatbots.protocol import ChatbotContext, Reply, retrieve_evidence, validate_reply
from hallulab.scenarios.components import read_options
from hallulab.scenarios.transcript import Frozen, Message


class EndpointOptions(Frozen):
    """Where the bot is, and what is sent to it."""

    model: str | None = None
    """With `base_url`: the endpoint's name of the bot. Without: a name under `models`; None: the experiment's
    model."""
    base_url: BaseUrl | None = None
    """The bot's OpenAI-compatible base URL, ending in `/v1`."""
    api_key_env: str | None = None
    """Environment variable with the endpoint's key; only with `base_url`."""
    system: str | None = None
    """A system prompt to send first, if the bot needs one."""
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    """Sampling temperature; None: not sent, so the bot uses its own."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Limit of a reply in tokens; None: not sent."""

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if self.base_url is not None and self.model is None:
            raise ValueError("with `base_url`, the option `model` says what the endpoint calls the bot")
        if self.base_url is None and self.api_key_env is not None:
            raise ValueError("`api_key_env` belongs to a `base_url`, which is not given")
        return self


class EndpointBot:
    """Your own bot behind an OpenAI-compatible endpoint (1 call a reply that we see).

    Raises:
        UsageError: an option is unknown or wrong, the experiment lacks the named model, or the endpoint's key
            is missing.
    """

    VERSION = 1
    KIND = "endpoint"
    OPTIONS = EndpointOptions
    PROMPTS = ()

    def __init__(self, context: ChatbotContext) -> None:
        self._context = context
        self._options = options = read_options(f"chatbot {self.KIND}", EndpointOptions, context.options)
        if options.base_url is not None and options.model is not None:
            self._client = context.models.at(Endpoint(options.model, options.base_url, options.api_key_env))
        else:
            self._client = context.models.get(options.model or context.model)
        self._client.check_key()

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        options = self._options
        session = Session(
            self._context.models, "chatbot", turn_seed(self._context.seed, history), self._client
        )
        messages = [ChatMessage("system", options.system)] if options.system else []
        with failures_as_chatbot_errors(session.calls):
            answer = await session.text(
                "reply",
                [*messages, *format_chat(history)],
                temperature=options.temperature,
                max_tokens=options.max_tokens,
            )
            text = validate_reply(self._client.endpoint.model, answer)
            query, passages, step = await retrieve_evidence(self._context, history)
        return Reply(text=text, query=query, passages=passages, steps=(step,), calls=tuple(session.calls))

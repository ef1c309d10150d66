"""The request to a bot over HTTP: its options, and templates, filled in with the dialogue.

Templates (`hallulab.chatbots.templates`) know `message` (the user's last message), `history` (a list of
`{"role", "content"}`), `session` (another text for each conversation) and, of a bot that keeps the
conversation, `answer` (the fields of its last answer, such as its own id of the conversation). Filled-in
values are text: they are no template, and no variable of the environment is put in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode

from pydantic import AfterValidator, Field, model_validator

from hallulab.agents.models.endpoints import check_url
from hallulab.agents.models.wire_settings import HEADER, VARIABLE, Query, check_headers, read_secret
from hallulab.chatbots.json_paths import JmesPath
from hallulab.chatbots.templates import evaluate, fill_in_text
from hallulab.scenarios.components import LeadsTo
from hallulab.scenarios.transcript import Frozen, Message

_EXPRESSION = re.compile(r"\{\{((?:(?!\}\}|\{\{).)*)\}\}", re.DOTALL)
"""A text that is one expression: in a structure, its value may be of any kind."""

_FORM = "x-www-form-urlencoded"

SAMPLE = 'It\'s "wet"\\\n{{ message }} ${HOME} \u2028'
"""A message that a template must bear."""

_TEMPLATE = re.compile(r"\{\{.*?\}\}")
"""A template in an address."""


def _check_place(url: str) -> str:
    """Return an address whose path may be a template."""
    if VARIABLE.search(url):
        raise ValueError("a variable is filled in in `headers` alone")
    check_url(_TEMPLATE.sub("x", url))
    if "{{" in url.split("/", 3)[2]:
        raise ValueError("no template stands in the place of the host")
    return url


def _check_own_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers, among them perhaps the content type, which no other kind of bot may set."""
    check_headers({name: value for name, value in headers.items() if name.lower() != "content-type"})
    return headers


class HttpOptions(Frozen):
    """Request to a bot, and places of the values in its answer."""

    url: Annotated[str, AfterValidator(_check_place), LeadsTo("address")]
    """The address that is asked; its path may have templates."""
    method: Literal["POST", "GET", "PUT", "PATCH"] = "POST"
    headers: Annotated[dict[str, str], AfterValidator(_check_own_headers), LeadsTo("header")] = Field(
        default_factory=dict
    )
    """Headers: name → text, in which `${VARIABLE}` is the value of an environment variable, and the rest is a
    template."""
    query: Query = Field(default_factory=dict)
    """Parameters of the address: name → template."""
    body: Any = None
    """The body: a structure whose texts are templates, or a template of the whole; None: there is none."""
    reply: JmesPath | None = None
    """Where the answer has the reply; None: the answer is the reply, as a text."""
    passages: JmesPath | None = None
    """Where it has what the bot read: a list of texts, or of objects with a text; None: nowhere."""
    event: JmesPath | None = None
    """Where each server-sent event has its piece of the reply; None: the data of an event is a piece."""
    stateful: bool = False
    """True if the bot keeps the conversation by its session and gets the last message alone."""
    job: JmesPath | None = None
    """Where an answer with status 202 has the address of the result; None: in the header `Location`."""
    waiting: JmesPath | None = None
    """Value that is true in an answer while the job goes on; None: the status 202 says so."""

    @model_validator(mode="after")
    def _belong_together(self) -> Self:
        if self.method == "GET" and self.body is not None:
            raise ValueError("`method: GET` has no body; put the message into `query`")
        templates = [json.dumps(self.body), *self.query.values()]
        named = next((found[0] for one in templates if (found := VARIABLE.search(one))), None)
        if named is not None:
            raise ValueError(
                f"`{named}` would be sent as it stands: a variable is filled in in `headers` alone"
            )
        if self.body is None and not self.query:
            raise ValueError('give a `body` with what was said, such as {message: "{{ message }}"}')
        return self


@dataclass(frozen=True)
class TemplateValues:
    """Values that fill templates in."""

    message: str
    history: tuple[Mapping[str, str], ...]
    """Messages so far, oldest first, with that message."""
    session: str
    """Another text for each conversation."""
    answer: Mapping[str, Any] | None = None
    """The fields of the bot's last answer; none before its first one. None: the bot keeps nothing."""

    @classmethod
    def make(
        cls, history: Sequence[Message], session: str, answer: Mapping[str, Any] | None
    ) -> TemplateValues:
        """Return what a dialogue fills in.

        Args:
            session: see above.
            answer: see above; a bot that keeps the conversation gets the last message alone.
        """
        told = history if answer is None else history[-1:]
        messages = tuple({"role": one.role, "content": one.text} for one in told)
        return cls(history[-1].text, messages, session, answer)

    @property
    def variables(self) -> dict[str, Any]:
        """Names that templates know."""
        known = {"message": self.message, "history": list(self.history), "session": self.session}
        return known if self.answer is None else {**known, "answer": dict(self.answer)}


def render(template: str, said: TemplateValues) -> str:
    """Fill in a template.

    Raises:
        ValueError: the template is wrong; says why.
    """
    return fill_in_text(template, said.variables)


def fill_in(value: Any, said: TemplateValues) -> Any:
    """Fill in the texts of a structure; one that is a single expression becomes its value.

    Raises:
        ValueError: a template is wrong; says why.
    """
    if isinstance(value, str):
        alone = _EXPRESSION.fullmatch(value.strip())
        if alone is None:
            return render(value, said)
        return evaluate(alone[1], said.variables)
    if isinstance(value, Mapping):
        return {name: fill_in(item, said) for name, item in value.items()}
    return [fill_in(item, said) for item in value] if isinstance(value, list) else value


def build_body(body: Any, said: TemplateValues, kind: str) -> str:
    """Return a request's body.

    Args:
        body: a template of the whole, or a structure whose texts are templates.
        kind: its content type, which decides the form of a structure: JSON or a form.

    Raises:
        ValueError: a template is wrong, or the body cannot be of that kind.
    """
    if isinstance(body, str):
        text = render(body, said)
        try:
            if "json" in kind.lower():
                json.loads(text)
        except ValueError as error:
            raise ValueError(
                f"the template makes no JSON ({error}); write `{{{{ message | tojson }}}}`, without "
                "quotation marks around it, or give the body as a structure"
            ) from error
        return text
    filled = fill_in(body, said)
    if _FORM in kind.lower():
        if not isinstance(filled, Mapping) or not all(isinstance(one, str | int) for one in filled.values()):
            raise ValueError("a form has names with texts or numbers; give another body as a text")
        return urlencode(filled)
    if "json" not in kind.lower():
        raise ValueError(
            f"a structure is sent as JSON or as a form ({_FORM}), and the header `Content-Type` says "
            f"{kind!r}; give the body as a text"
        )
    try:
        return json.dumps(filled, ensure_ascii=False, allow_nan=False)
    except TypeError as error:  # an undefined value, or a function
        raise ValueError(f"a template makes no value that JSON has ({error})") from error


def build_headers(
    headers: Mapping[str, str], said: TemplateValues, address: str
) -> tuple[dict[str, str], list[str]]:
    """Return a request's headers, and the secrets in them.

    Args:
        headers: name → text, in which `${VARIABLE}` is the value of a variable of the environment, and the
            rest is a template.
        address: who gets them, for errors.

    Raises:
        ValueError: a template is wrong, or what it makes is no header.
        UsageError: a variable is not set.
    """
    made, secrets = {}, []
    for name, value in headers.items():
        pieces = VARIABLE.split(value)
        for at, piece in enumerate(pieces):
            if at % 2:  # the name of a variable
                pieces[at] = read_secret(piece, address, HEADER)
                secrets.append(pieces[at])
            else:
                pieces[at] = render(piece, said)
        made[name] = "".join(pieces)
        if not made[name].isascii() or not made[name].isprintable():
            raise ValueError(f"the header `{name}` would have letters beyond ASCII or line ends in it")
    return made, secrets

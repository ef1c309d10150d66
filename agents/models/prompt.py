"""Prompt files: text beside the code that uses it, filled in one pass, versioned by hash.

A prompt file is a chat template. A line `### system`, `### user` or `### assistant` opens a message; its text
goes up to the next such line and is stripped. `{{name}}` is a placeholder. Inserted values are never scanned
again, so untrusted text that looks like a placeholder or a heading stays text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal

from hallulab.scenarios.transcript import Message

ChatRole = Literal["system", "user", "assistant"]

_HEADING = re.compile(r"^### (system|user|assistant)[ \t]*$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class ChatMessage:
    """One message of a request to a model."""

    role: ChatRole
    text: str


@dataclass(frozen=True)
class Prompt:
    """A chat template with named placeholders."""

    name: str
    template: str

    @cached_property
    def version(self) -> str:
        """First 12 hex digits of the template's sha256."""
        return hashlib.sha256(self.template.encode()).hexdigest()[:12]

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """Names that `fill` must be given."""
        return frozenset(_PLACEHOLDER.findall(self.template))

    def fill(self, values: Mapping[str, str] | None = None, /, **more: str) -> list[ChatMessage]:
        """Return the messages with every placeholder replaced.

        Raises:
            ValueError: a placeholder has no value, or a value has no placeholder.
        """
        given = {**(values or {}), **more}
        if given.keys() != self.placeholders:
            wrong = sorted(given.keys() ^ self.placeholders)
            raise ValueError(f"prompt {self.name!r}: missing or unknown placeholders {wrong}")
        return [
            ChatMessage(role, _PLACEHOLDER.sub(lambda match: given[match[1]], text))
            for role, text in self._messages
        ]

    def without_examples(self) -> Prompt:
        """Return the same prompt without answered examples: its system messages and its last message."""
        *before, last = self._messages
        kept = [*(message for message in before if message[0] == "system"), last]
        return Prompt(self.name, "".join(f"### {role}\n{text}\n" for role, text in kept))

    @cached_property
    def _messages(self) -> list[tuple[ChatRole, str]]:
        """Role and template of each message."""
        pieces = _HEADING.split(self.template)
        if pieces[0].strip() or len(pieces) < 3:
            raise ValueError(f"prompt {self.name!r}: the file begins with a `### system|user|assistant` line")
        return [(role, text.strip()) for role, text in zip(pieces[1::2], pieces[2::2], strict=True)]  # type: ignore[misc]


@cache
def load_prompt(package: str, name: str) -> Prompt:
    """Read `prompts/NAME.txt` of a package: `load_prompt("hallulab.chatbots", "generation")`."""
    text = files(package).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")
    return Prompt(name, text)


def load_prompt_at(place: str) -> Prompt:
    """Read a prompt file by its floor and its name: `load_prompt_at("chatbots/generation")`."""
    package, name = place.split("/")
    return load_prompt(f"hallulab.{package}", name)


def format_dialogue(history: Sequence[Message]) -> str:
    """Format a dialogue for a prompt: one `User: …` or `Assistant: …` paragraph a message."""
    return "\n".join(f"{message.role.capitalize()}: {message.text.strip()}" for message in history)

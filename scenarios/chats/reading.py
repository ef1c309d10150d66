"""Find the fields of a file of chats: by the names in it, never by a guess.

A name counts without case, `_`, `-` and spaces, so `sessionId`, `session_id` and `Session ID` are one. Two
names that could be the same thing are refused, unless the user says which it is (`hallulab import --map`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hallulab.scenarios.chats.values import FormatError
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.text.wording import join_names, shorten_line
from hallulab.scenarios.transcript import Verdict

NAMES: Mapping[str, tuple[str, ...]] = {
    "user": (
        "user", "question", "query", "input", "prompt", "user_message", "user_input", "user_query",
        "user_prompt", "human", "instruction", "input_text", "inputs", "user_question", "customer_message",
        "input_transcript",
    ),
    "reply": (
        "reply", "answer", "response", "output", "assistant", "assistant_message", "assistant_response",
        "completion", "actual_output", "model_output", "model_response", "bot_response", "generated_answer",
        "generated_text", "output_text", "prediction", "ai_response", "outputs", "bot_message", "bot_answer",
        "llm_response", "llm_output", "agent_response", "chatbot_response", "response_body",
    ),
    "passages": (
        "passages", "contexts", "context", "retrieved_contexts", "retrieved_documents", "retrieved_docs",
        "retrieval_context", "documents", "evidence", "knowledge", "retrieved_context", "retrieved_passages",
        "retrieved_chunks", "source_documents", "source_nodes", "retrieved_nodes", "retriever_resources",
        "chunks", "search_results", "retrieved_texts",
    ),
    "session": (
        "conversation", "conversation_id", "session_id", "session", "chat_id", "thread_id", "dialogue_id",
        "dialog_id", "conversation_hash", "conversation_uuid", "chat_session_id", "ticket_id",
    ),
    "turn": ("turn", "turn_id", "turn_index", "turn_number", "position", "message_index"),
    "time": (
        "timestamp", "time", "created_at", "created", "date", "datetime", "start_time", "create_time",
        "sent_at",
    ),
    "role": (
        "role", "speaker", "sender", "author", "message_type", "sender_type", "sender_role", "author_role",
        "message_role", "from", "author_type", "actor_type", "participant_role", "participant_type",
    ),
    "text": ("content", "text", "message", "message_text", "body", "parts"),
    "messages": ("messages", "conversations", "conversation", "dialogue", "dialog", "chat", "turns"),
    "chatbot": ("chatbot", "bot", "bot_name", "assistant_name"),
    "model": ("model", "model_name", "model_id"),
    "topic": ("topic",),
}  # fmt: skip
"""Field → the names under which files have it."""

_NAMES_AT_ONCE = 4_096
_NO_LETTER = re.compile(r"[\s_\u200b\ufeff-]+")


@lru_cache(_NAMES_AT_ONCE)
def fold_name(name: str) -> str:
    """Return a name without what does not count.

    >>> fold_name("sessionId") == fold_name("Session ID") == fold_name("session_id")
    True
    """
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", name)).casefold()


def fold_names(names: str) -> tuple[str, ...]:
    """Return the folded names of a text that parts them by spaces."""
    return tuple(map(fold_name, names.split()))


def fold_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with folded names; of two that are one then, the first counts.

    >>> fold_keys({"traceId": 1, "trace_id": 2})
    {'traceid': 1}
    """
    found = dict[str, Any]()
    for name, one in value.items():
        found.setdefault(fold_name(str(name)), one)
    return found


_FOLDED = {field: frozenset(map(fold_name, names)) for field, names in NAMES.items()}


_FLAT = {
    "user": ("input", "inputs"), "reply": ("output", "outputs"), "session": ("metadata",),
    "passages": ("output", "outputs", "input", "inputs"),
}  # fmt: skip
"""Field → objects that have it inside, in names such as `inputs.question` (LangSmith)."""


_WORDS = re.compile(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])|\d+")
_REPLIES = frozenset(("answer", "response", "output", "reply", "completion", "prediction"))
_MODELS = re.compile(r"(?:gpt|chatgpt|claude|gemini|gemma|llama|mistral|mixtral|qwen|phi|deepseek)\d*")
_SPEAKERS = re.compile(
    r"model|llms?|lm|ai|bot|chatbot|assistant|agent|rag|system|predicted|pred|candidate|generated|actual"
)


def _fits(name: str, field: str) -> bool:
    """Return whether a name is one of those of what is looked for."""
    outer, dot, inner = name.rpartition(".")
    if dot and fold_name(outer) in _FLAT.get(field, ()):
        name = inner
    return fold_name(name) in _FOLDED[field]


def _is_of_model(name: str, given: Collection[str]) -> bool:
    """Return whether a name says that a model replied: `gpt-4o_response`, beside an `answer` to compare.

    Args:
        name: one that is not known as a reply.
        given: folded names that the user gave to something.
    """
    words = [word.casefold() for word in _WORDS.findall(name)]
    if len(words) < 2 or fold_name(name) in given:
        return False
    if words[-1] in _REPLIES:
        return any(_MODELS.fullmatch(word) or _SPEAKERS.fullmatch(word) for word in words)
    # `answer_gpt_4o`, and not `response_model`, which may name the model, or `response_gpt4_tokens`.
    rest = [word for word in words[1:] if len(word) > 2]
    return words[0] in _REPLIES and bool(rest) and all(map(_MODELS.fullmatch, rest))


def is_known(name: str) -> bool:
    """Return whether a name is one of those that are looked for."""
    return any(_fits(name, field) for field in NAMES)


class AmbiguousNameError(FormatError):
    """Several names of a file could be the same thing.

    Args:
        names: those.
        field: what they could be.
    """

    def __init__(self, names: Sequence[str], field: str) -> None:
        remedy = " or ".join(f"--map {field}={name}" for name in names)
        super().__init__(f"{self.describe(names, field)} Say which: {remedy}.")
        self.names = tuple(names)
        self.field = field

    @staticmethod
    def describe(names: Sequence[str], field: str) -> str:
        """Return the sentence without its remedy."""
        told = join_names([f"`{name}`" for name in names])
        return f"{told} could {'both' if len(names) == 2 else 'all'} be the {field}."


class Layout(NamedTuple):
    """Names of a known tool, which leave no doubt together: Ragas' `reference` is no reply."""

    name: str
    needs: tuple[str, ...]
    """Names by which it is known."""
    fields: Mapping[str, str]
    """Field → its name there; other names are not read."""


LAYOUTS: tuple[Layout, ...] = (
    Layout(
        "Ragas", ("user_input", "response"),
        {"user": "user_input", "reply": "response", "passages": "retrieved_contexts"},
    ),
    Layout("Ragas, several turns", ("user_input",), {"messages": "user_input"}),
    Layout(
        "DeepEval", ("input", "actual_output"),
        {"user": "input", "reply": "actual_output", "passages": "retrieval_context"},
    ),
    # Its `inputs` are variables of the prompt.
    Layout(
        "Dify", ("query", "answer", "inputs"),
        {"user": "query", "reply": "answer", "passages": "retriever_resources"},
    ),
    # The text of its parts is in both.
    Layout("Vercel's AI SDK", ("content", "parts"), {"text": "content"}),
    # Its `context` is what the bot should have been given, and `retrieval_context` what it was.
    Layout("DeepEval, its evidence", ("context", "retrieval_context"), {"passages": "retrieval_context"}),
)  # fmt: skip
"""The known tools; of those whose names are all there, the first that names a field decides it."""

_MOST_TOLD = 30
"""Names that are told as not read, at most."""


class Reading:
    """One reading of a file: what the user decided, and what was taken, left out and noticed.

    Args:
        mapping: what is looked for → the name that the user gave for it; others are chosen by `NAMES`.
        skip_bad: records that may be left out because they are wrong, at most.

    Raises:
        UsageError: `mapping` names something that is not looked for.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None, skip_bad: int = 0) -> None:
        self.mapping = dict(mapping or {})
        self.skip_bad = skip_bad
        self.taken: dict[str, dict[str, None]] = {}
        """Field → the names that were taken for it, in the order in which they were met."""
        self.unread: dict[str, None] = {}
        self._notes: dict[str, int] = {}
        self.skipped: list[str] = []
        """The wrong records that were left out: place and reason."""
        self.verdicts: dict[str, Sequence[Verdict]] = {}
        """Identifier of a conversation that we exported → the verdicts on it. An import keeps the first of
        several conversations with one identifier, so its verdicts count."""
        self._chosen: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, str]] = {}
        if unknown := [field for field in self.mapping if field not in NAMES]:
            near = suggest_name(unknown[0], NAMES)
            raise UsageError(f"--map {unknown[0]}: unknown{near}. Map one of {', '.join(NAMES)}.")

    def choose(self, names: Iterable[str], *fields: str) -> dict[str, str]:
        """Return what is looked for → its name in a record or header; what is not there is missing.

        The names are noted as taken, and the others as not read.

        Args:
            names: those in the file.
            fields: what is looked for, of `NAMES`.

        Raises:
            FormatError: two names could be the same, or a name that the user gave is not there.
        """
        key = (tuple(names), fields)
        if key not in self._chosen:
            chosen = self._choose(*key)
            for field, name in chosen.items():
                self.take(field, name)
            self.leave(name for name in key[0] if name not in chosen.values())
            self._chosen[key] = chosen
        return self._chosen[key]

    def _choose(self, names: tuple[str, ...], fields: tuple[str, ...]) -> dict[str, str]:
        # Reversed: of names that are one when folded, the first counts.
        folded = {fold_name(name): name for name in reversed(names)}
        layouts = [one for one in LAYOUTS if all(fold_name(name) in folded for name in one.needs)]
        known = dict(item for layout in reversed(layouts) for item in layout.fields.items())
        given = {fold_name(name) for name in self.mapping.values()}
        chosen = dict[str, str]()
        for field in fields:
            if field in self.mapping:
                name = self.mapping[field]
                if name not in names and fold_name(name) not in folded:
                    raise FormatError(
                        f"--map {field}={name}: there is no such name{suggest_name(name, names)} among "
                        f"{shorten_line(', '.join(names))}. Correct it."
                    )
                chosen[field] = name if name in names else folded[fold_name(name)]
            elif field in known:
                if (there := folded.get(fold_name(known[field]))) is not None:
                    chosen[field] = there
            else:
                found = [name for name in names if _fits(name, field) and fold_name(name) not in given]
                if found and field == "reply":
                    found += [name for name in names if name not in found and _is_of_model(name, given)]
                if len(found) > 1:
                    raise AmbiguousNameError(found, field)
                if found:
                    chosen[field] = found[0]
        return chosen

    def take(self, field: str, name: str) -> None:
        """Note that a name was taken for what is looked for; it counts as read from then on."""
        self.taken.setdefault(field, {})[name] = None
        self.unread.pop(name, None)

    def drop(self, field: str, name: str, reason: str) -> None:
        """Note that what a name was taken for is not there, so it was not read."""
        self.taken.get(field, {}).pop(name, None)
        if not self.taken.get(field):
            self.taken.pop(field, None)
        self.note(f"`{name}` {reason}: it was not read.")

    def leave(self, names: Iterable[str]) -> None:
        """Note that names were not read, unless they were elsewhere."""
        read = {name for taken in self.taken.values() for name in taken}
        self.unread |= dict.fromkeys(name for name in names if name.strip() and name not in read)

    def note(self, sentence: str) -> None:
        """Keep a sentence for the user."""
        self._notes[sentence] = 0

    def count(self, what: str) -> None:
        """Count one of what the user is told of only as a number, such as images that were left out."""
        self._notes[what] = self._notes.get(what, 0) + 1

    @property
    def notes(self) -> list[str]:
        """Sentences for the user about what was read; each once."""
        return [f"{what}: {count:,}." if count else what for what, count in self._notes.items()]

    def skip(self, error: Exception, place: str) -> None:
        """Leave a wrong record out, if as many may be.

        Args:
            error: what is wrong with it.
            place: where it is in the file.

        Raises:
            Exception: `error` itself: no more may be left out.
        """
        if len(self.skipped) >= self.skip_bad:
            raise error
        told = str(error)
        self.skipped.append(told if place in told else f"{place}: {told}")

    def describe(self) -> str:
        """Return what was taken for what, and what was not read; empty if nothing was noted.

        >>> reading = Reading()
        >>> _ = reading.choose(("question", "response", "score"), "user", "reply")
        >>> reading.describe()
        'user ← question, reply ← response; not read: score'
        """
        taken = [f"{field} ← {' and '.join(names)}" for field, names in self.taken.items()]
        more = [f"{len(self.unread) - _MOST_TOLD} more"] if len(self.unread) > _MOST_TOLD else []
        named = [shorten_line(name) for name in islice(self.unread, _MOST_TOLD)]
        unread = [f"not read: {', '.join([*named, *more])}"] if self.unread else []
        return "; ".join(filter(None, [", ".join(taken), *unread]))


def parse_mapping(text: str | None) -> dict[str, str]:
    """Return what the option `--map` says: `user=question,reply=response`.

    Raises:
        UsageError: it is no such list.
    """
    found = dict[str, str]()
    for part in filter(None, re.split(r",(?=\s*\w+\s*=)", text or "")):
        field, equals, name = (one.strip() for one in part.partition("="))
        if not equals or not field or not name:
            raise UsageError(f"--map {part}: is no pair. Write user=question,reply=response.")
        if field in found:
            raise UsageError(f"--map {field}: is given twice. Give it once.")
        found[field] = name
    return found


def place_in(path: Path, place: str | None) -> str:
    """Return a place in a file in words, for errors and notes."""
    return ", ".join(filter(None, (str(path), place)))

"""The reformulated query (HalluDetect section 3.1, D.1): a question that can be understood alone.

Chatbots and HalluDetect use the same prompt (D.6). The request depends on the dialogue and the model only
(temperature 0, a fixed seed), so all requests about one dialogue share one answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hallulab.agents.models.errors import UnparseableAnswer
from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt, format_dialogue, load_prompt
from hallulab.scenarios.transcript import Message

QUERY_TOKENS = 60
"""Limit of a reformulated query, in tokens."""

_LABEL = re.compile(
    r"\A(?:[\s*_#>]*(?:user|assistant|query|question|rewritten[^:\n]*)[*_ ]*:[*_ ]*)+", re.IGNORECASE
)


def load_reformulation_prompt() -> Prompt:
    """Return the prompt file, for components whose version depends on it."""
    return load_prompt("hallulab.agents.retrieval", "reformulation")


async def reformulate(session: Session, history: Sequence[Message], question: str) -> str:
    """Rewrite `question` as a query that is understood without `history` (oldest first). One call.

    Raises:
        UnparseableAnswer: the model wrote nothing.
        ModelError: no answer.
    """
    conversation = format_dialogue([*history, Message(role="user", text=question)])
    answer = await replace(session, seed=0).text(
        "reformulate", load_reformulation_prompt().fill(conversation=conversation), max_tokens=QUERY_TOKENS
    )
    query = tidy_query(answer)
    if not query:
        raise UnparseableAnswer(f"reformulate: the model turned the message to nothing: {answer[:80]!r}.")
    return query


def tidy_query(text: str) -> str:
    """Return the first line of a model's query, without labels and outer quotation marks. May be empty."""
    line = _LABEL.sub("", text.strip()).strip().split("\n", 1)[0].strip()
    if len(line) > 1 and line[0] == line[-1] and line[0] in "\"'`":
        line = line[1:-1].strip()
    return line

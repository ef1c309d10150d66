"""The evidence for a reply: doubled retrieval, memory, and what the user said (B.1.1, B.1.2)."""

from __future__ import annotations

from collections.abc import Sequence

from hallulab.agents.models.model import Session
from hallulab.agents.models.prompt import Prompt, format_dialogue
from hallulab.agents.retrieval.reformulation import reformulate
from hallulab.detectors.base.judging import format_evidence
from hallulab.scenarios.text.courtesies import is_courtesy
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Frozen, Message, Passage, TurnView

MEMORY_TOKENS = 120
"""Limit of the memory summary."""
USER_SHARE = 0.25
"""Share of the evidence's room that the user's own messages may take."""


class EvidenceContext(Frozen):
    """Everything that a reply may rest on."""

    documents: str
    """The numbered passages as they read in a prompt."""
    text: str
    """The documents, then what the user said and the memory of the dialogue."""
    passages: tuple[Passage, ...]
    """The passages in it: the turn's own first, then what doubled retrieval found."""
    found: tuple[Passage, ...] = ()
    """What doubled retrieval found besides, if it is not shown with every sentence."""
    user_text: str
    """Every message of the user, in full."""
    query: str | None
    """The reformulated query; None when there was nothing to search."""
    memory: str | None
    """The summary of the dialogue; None at its first turn."""
    truncated: bool
    """Whether something had to be left out."""

    @property
    def passage_text(self) -> str:
        """The passages' own text, without numbers."""
        return "\n".join(passage.text for passage in self.passages)

    @property
    def user_statements(self) -> str:
        """What the user said, without questions: to ask whether something is so is not to say it."""
        lines = self.user_text.split("\n")
        said = [region.of(line) for line in lines for region in split_sentences(line)]
        return " ".join(sentence for sentence in said if not sentence.endswith("?"))


async def gather_grounds(
    session: Session, view: TurnView, memory_prompt: Prompt, *, factor: int, max_characters: int
) -> EvidenceContext:
    """Search with the reformulated query, summarize the history, and put everything together.

    Up to two calls: one if there is a knowledge base to search, one if there is a history.

    Raises:
        OperationalError: a model or the knowledge base failed.
    """
    query = None
    found: tuple[Passage, ...] = ()
    if view.knowledge is not None and not is_courtesy(view.question):
        query = await reformulate(session, view.history, view.question)
        found = await view.knowledge.search(query, factor * max(len(view.passages), 1))
    memory = await _memory(session, view.history, memory_prompt) if view.history else None
    passages = merge_passages(view.passages, found)
    user_text = view.user_text
    room = int(USER_SHARE * max_characters)
    evidence = format_evidence(passages, max_characters - min(room, len(user_text)))
    parts = [evidence.text] if evidence.text else []
    spoken = " ".join(user_text.split())
    parts.append(f"Words of the user: {spoken[-room:]}")
    if memory:
        parts.append(f"Memory of the conversation: {memory}")
    return EvidenceContext(
        documents=evidence.text,
        text="\n".join(parts),
        passages=evidence.passages,
        user_text=user_text,
        query=query,
        memory=memory,
        truncated=evidence.truncated or len(spoken) > room,
    )


async def _memory(session: Session, history: Sequence[Message], prompt: Prompt) -> str:
    answer = await session.text(
        "memory", prompt.fill(conversation=format_dialogue(history)), max_tokens=MEMORY_TOKENS
    )
    return " ".join(answer.split())


def merge_passages(own: Sequence[Passage], found: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return the turn's own passages, then those found that are not among them (by id)."""
    known = {passage.id for passage in own}
    return (*own, *(passage for passage in found if passage.id not in known))

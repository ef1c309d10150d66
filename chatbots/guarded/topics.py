"""Which topics a question and its evidence are on, by rules and by the served model (MetaRAG section 3.6).

Only the topic of query and context is found out. Nothing is inferred about the person who asks.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.session import Session
from hallulab.chatbots.guarded.policy import Policy, Topic
from hallulab.scenarios.errors import HallulabError
from hallulab.scenarios.text.words import TOKEN, read_word
from hallulab.scenarios.transcript import Frozen, Passage

PROMPT = "topic"
"""The prompt file of the model that tags."""

MOST_EVIDENCE = 1000
"""Characters of the evidence that the model is shown: a topic is told from few words."""


class Tags(Frozen):
    """The topics of a question and its evidence."""

    found: dict[str, str]
    """Topic → why: the word and where it stands, the passage with this label, or the model's probability."""
    error: str | None = None
    """Why the model that tags gave no answer; the topics are then not known for sure."""


@dataclass(frozen=True)
class TopicSubject:
    """Texts in which topics are looked for."""

    question: str
    query: str | None
    """The stand-alone query, if the chatbot made one."""
    passages: Sequence[Passage]


async def tag(policy: Policy, labels: Iterable[str], asked: TopicSubject, session: Session) -> Tags:
    """Return the topics, as the policy's tagger finds them.

    Args:
        labels: topics of the scenario with a stricter threshold; passages may have them as their label.
        asked: question, query and evidence.
        session: asks the model, if the tagger is one.
    """
    found: dict[str, str] = {}
    if policy.tagger != "model":
        found = match_topics_by_rules(policy.topics, labels, asked)
    if policy.tagger == "rules":
        return Tags(found=found)
    try:
        name, share = await choose_topic_by_model(policy.topics, asked, session)
    except HallulabError as error:
        return Tags(found=found, error=str(error))
    if name is not None:
        found.setdefault(name, f"the model, P = {share:.2f}")
    return Tags(found=found)


def match_topics_by_rules(
    topics: Mapping[str, Topic], labels: Iterable[str], asked: TopicSubject
) -> dict[str, str]:
    """Return topic → why, for the topics whose words stand in the texts, or that label a passage."""
    texts = [("question", asked.question)]
    if asked.query is not None:
        texts.append(("query", asked.query))
    # Bots of other people give several passages one identifier.
    texts += [(f"passage {passage.id}", passage.text) for passage in asked.passages]
    stems = [(place, _collect_stems(text)) for place, text in texts]
    found = {}
    for name in dict.fromkeys([*topics, *labels]):
        phrases = {word: _collect_stems(word) for word in topics.get(name, Topic()).words}
        why = [
            f"{word!r} in the {place}"
            for place, said in stems
            for word, phrase in phrases.items()
            if phrase and any(said[at : at + len(phrase)] == phrase for at in range(len(said)))
        ]
        why += [f"the label of passage {one.id}" for one in asked.passages if one.topic == name]
        if why:
            found[name] = why[0]
    return found


def _collect_stems(text: str) -> list[str]:
    return [read_word(spelling).stem for spelling in TOKEN.findall(text)]


async def choose_topic_by_model(
    topics: Mapping[str, Topic], asked: TopicSubject, session: Session
) -> tuple[str | None, float]:
    """Return the model's choice of a topic, None for none of them, and its probability. One call, one token.

    Raises:
        HallulabError: the model gave no answer, or none of the letters.
    """
    names: list[str | None] = [*topics, None]
    by_letter = dict(zip(string.ascii_uppercase, names, strict=False))
    lines = [
        f"{letter}. {'something else' if name is None else f'{name}: {topics[name].about or name}'}"
        for letter, name in by_letter.items()
    ]
    evidence = " ".join(" ".join(passage.text.split()) for passage in asked.passages)
    messages = load_prompt("hallulab.chatbots", PROMPT).fill(
        topics="\n".join(lines),
        evidence=evidence[:MOST_EVIDENCE] or "(none)",
        question=asked.query or asked.question,
    )
    share = await session.choose("guard.topic", messages, list(by_letter))
    letter = max(by_letter, key=lambda one: share[one])
    return by_letter[letter], share[letter]

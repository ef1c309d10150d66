"""Read a customer's instructions: Markdown that tells a simulated user of tau2-bench whom to play, and how.

Instructions are running text, or sections such as `**Your goal:**` and `## How to Behave`. They are data:
what they tell the reader to do is sorted, never done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hallulab.simulator.authoring.tau_knowledge.third_person import lower_shouted

_LABEL = re.compile(r"\*\*(?P<label>[^*:]{2,80}):?\*\*:?[ \t]*(?P<rest>.*)")
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<label>.+)")
_ITEM = re.compile(r"(?:[-*]|\d{1,3}[.)])[ \t]+(?P<text>.+)")
_QUOTE = re.compile(r'"([^"]{12,})(?:"|$)')
_SENTENCE = re.compile(
    r"(?<=[a-z0-9%)\"'][.!?])\s+(?=[A-Z\"])|(?<=[!?])\s+(?=[A-Z])|(?<=[a-z]\.)(?=[A-Z][a-z])"
    r"|(?<=[A-Z]{2}\.)\s+(?=[A-Z])"
)
_SIMULATION = re.compile(
    r"\bagent'?s?\b|\btools?\b|\bplaying the role\b|\bon the line\b|\bonly mention\b|\bbring this up\b"
    r"|\bdump\b|\byou should provide\b|\byou must\b|\bprovide (?:additional|other|any)\b|\bhappy to\b"
    r"|\bmake up\b|\bneed to mention\b|\bnever respond\b|\bno need to\b|\bthe model\b|\bpause\b"
    r"|\bend the (?:call|conversation)\b|\bdo not (?:volunteer|provide|mention|ask)\b"
    r"|\bdeflect\b|\breal customer\b|\bcertain of this\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"(?<![\s:;,(\-–—])[\s:;,(\-–—]*\b(?:but )?do not "
    r"(?:provide|specify|volunteer|mention|make up|reveal)\b[^.)]*\)?",
    re.IGNORECASE,
)
_DONT = re.compile(r"\bdon't (?=provide|specify|volunteer|mention|make up|reveal)", re.IGNORECASE)
_BRACKETS = re.compile(r"(?:(?<!\s)\s+)?\((?:[^()]|\([^()]*\))*\)")
_NOT_SAID = re.compile(
    r"\bdo not (?:say|ask)\b|\bif the agent (?:clearly )?admits\b|\bbe specific\b", re.IGNORECASE
)
"""Before messages that the customer does not say, or that are the agent's."""
_OPENING = re.compile(r"\b(?:opening|start)", re.IGNORECASE)
_FLOW = ("conversation flow", "how to behave", "behavior guidelines", "critical", "important", "what not")
_STORY = ("", "your character", "your situation", "background")


class Instructions(NamedTuple):
    """The parts of a customer's instructions, each without marks of Markdown and without emphasis."""

    character: str
    """The sentence that begins with the name or the role."""
    story: tuple[str, ...]
    """Sentences to the customer about who they are and what happened."""
    goals: tuple[str, ...]
    """Sentences of the section `Your goal`."""
    facts: tuple[str, ...]
    """Entries of the lists of what the customer knows."""
    opening: str
    """The customer's first message; empty if none is given."""
    quotes: tuple[str, ...]
    """The other messages that are given word by word."""
    behaviour: tuple[str, ...]
    """Lines that say how the customer behaves, without the messages."""


def read_instructions(text: str) -> Instructions:
    """Sort the parts of instructions."""
    character, story, goals, facts, behaviour, quotes, opening = "", [], [], [], [], [], ""
    for section, line in _list_lines(text):
        item = _ITEM.fullmatch(line)
        said = item["text"] if item else line
        if any(name in section for name in _FLOW) or (item and section in _STORY):
            found = [] if _NOT_SAID.search(said) else [one.strip() for one in _QUOTE.findall(said)]
            if not opening and found and _OPENING.search(said.partition('"')[0]):
                opening, found = found[0], found[1:]
            quotes += found
            behaviour.append(_drop_marks(_QUOTE.sub("", said)))
        elif section.startswith("your goal"):
            goals += split_sentences(said)
        elif section.startswith(("your character", "your situation")) or (section == "" and not item):
            sentences = split_sentences(said)
            if not character and (about := _find_character(section, sentences)) is not None:
                character = sentences.pop(about)
            story += [one for one in sentences if not _SIMULATION.search(one)]
            behaviour += [one for one in sentences if _SIMULATION.search(one)]
        elif item and "do not" not in section:
            facts += [one for one in said.split(" | ") if one]
    return Instructions(
        character,
        tuple(story),
        tuple(goals),
        tuple(map(_drop_marks, facts)),
        opening,
        tuple(quotes),
        tuple(behaviour),
    )


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a line, without marks and without orders to keep something back."""
    told = _ASIDE.sub("", _DONT.sub("do not ", lower_shouted(text))).replace("..", ".")
    cleaned = (_drop_marks(one) for one in _SENTENCE.split(told))
    return [one for one in cleaned if one]


def drop_brackets(text: str) -> str:
    """Remove what stands in round brackets."""
    return _BRACKETS.sub("", text)


def _list_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that say something, each with the label of its section in small letters."""
    section = ""
    for line in text.replace("’", "'").replace("“", '"').replace("”", '"').split("\n"):
        line = " ".join(line.split())
        if heading := _HEADING.fullmatch(line):
            section = _name_section(heading["label"])
            continue
        if label := _LABEL.fullmatch(line):
            section, line = _name_section(label["label"]), label["rest"]
            if section.startswith("verification"):
                line = f"- {line}" if line else line
        if "behavior guidelines:" in line.lower():
            section = "behavior guidelines"
            continue
        if line:
            yield section, line


def _name_section(label: str) -> str:
    return label.replace("*", "").strip().rstrip(":").lower()


def _find_character(section: str, sentences: list[str]) -> int | None:
    """Return the place of the sentence that names the customer."""
    if section == "your character":
        return 0 if sentences else None
    return next((at for at, one in enumerate(sentences) if one.startswith("Your character is ")), None)


def _drop_marks(text: str) -> str:
    plain = re.sub(r"\*\*|`|#{3}\w*#{3}", "", lower_shouted(text)).strip(" \t-–—")
    return f"{plain.rstrip('.')}." if plain.endswith("..") else plain

"""The kinds of errors. Each takes a clean reply and returns it with an error, or None if it has no place.

The first six are what small chatbots do: seen in 66 labelled replies of ours. The others are what detectors
are commonly tested with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hallulab.scenarios.text import edits
from hallulab.scenarios.text.edits import Edit
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.library import SentenceBank, follows_the, whole_sentences
from hallulab.scenarios.text.spans import Region, sentences
from hallulab.scenarios.transcript import Message
from hallulab.simulator.stress.material import Clean, body


@dataclass(frozen=True)
class PlantedError:
    """A clean reply, and the same with an error."""

    clean: Clean
    """The twin; its question or history may differ from those that were given."""
    reply: str
    """The reply with the error."""
    start: int
    """First character of the wrong words."""
    end: int
    """One past their last character."""


Rule = Callable[[Clean, SentenceBank, random.Random], PlantedError | None]

_DAY, _YEAR = (2, 28), (2021, 2025)
_MONTHS = ("January", "March", "April", "June", "July", "September", "November", "December")
_FACTS = (
    "You told us that you signed the papers on {date}.",
    "In your case, the matter was already decided on {date}.",
    "As you said, your brother sent the first letter on {date}.",
    "You mentioned that you paid half of it in cash on {date}.",
    "Your own records show that nothing was delivered before {date}.",
    "You have lived abroad since {date}, so this applies to you as well.",
)
_STEPS = (
    "Before that, you must fill in Form {letter}-{number} and have it stamped.",
    "You then have to send {word} copies of the letter to {name} by registered post.",
    "The next step is a hearing by video call with {name}, which you book {number} days ahead.",
    "After that, you must pay a deposit of {number} percent of the sum in dispute.",
    "You first need a certificate of a notary, which is valid for {word} weeks.",
    "Finally, {name} sends an inspector to your home within {number} days.",
)
_SAME = 0.5
"""If two sentences share more than this of their words, they say much the same."""


def of_another_rule(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Replace one of the reply's sentences with one of another section."""
    here = {section for section, sentence in library.sentences if sentence in clean.evidence}
    others = [
        sentence
        for section, sentence in library.rules
        if section not in here and sentence not in clean.evidence
    ]
    if not others:
        return None
    region = generator.choice(sentences(clean.reply))
    return _replaced(clean, Edit(region.start, region.end, generator.choice(others)))


def of_another_body(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Replace a contact, deadline or amount with one that the evidence has for something else."""
    offered = [
        (sentence, item)
        for passage in clean.passages
        for sentence in whole_sentences(body(passage))
        for item in find_items(sentence)
        if item.kind in ("contact", "quantity", "date")
    ]

    def found(sentence: str) -> Iterator[Edit]:
        keys = {item.key for item in find_items(sentence)}
        for item in find_items(sentence):
            for elsewhere, other in offered:
                if other.key not in keys and _alike(item, other) and not _says_the_same(elsewhere, sentence):
                    yield Edit(item.start, item.end, other.text)

    return _one_edit(clean, found, generator)


def _alike(one: Item, other: Item) -> bool:
    """Return whether two items have the same form: unit of amounts; mail, web or phone of contacts."""
    return one.kind == other.kind != "name" and _form(one) == _form(other)


def _form(item: Item) -> str:
    if item.kind == "contact":
        letters = any(letter.isalpha() for letter in item.key)
        return "mail" if "@" in item.key else "web" if letters else "phone"
    if item.kind == "date":
        return str(len(item.key.split()))
    return item.key.partition(" ")[2] + (" currency" if item.text[:1] in "R₹$€£" else "")


def _says_the_same(one: str, other: str) -> bool:
    words, others = set(one.lower().split()), set(other.lower().split())
    return len(words & others) > _SAME * min(len(words), len(others))


def of_condition(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Drop or reverse a condition."""
    return _one_edit(clean, edits.condition_edits, generator)


def of_answer(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Ask whether a sentence holds, and answer yes for no or no for yes."""
    options = [
        (sentence, edit)
        for sentence in whole_sentences(clean.reply)
        if (edit := edits.negated(sentence)) is not None
    ]
    if not options:
        return None
    true, edit = generator.choice(options)
    false = edit.of(true)
    denies = "not" in true[edit.start : edit.end] and len(edit.text) < edit.end - edit.start
    asked = replace(
        clean,
        question=f"Is this right: {false if denies else true}",
        reply=f"{'No' if denies else 'Yes'}. {true}",
    )
    reply = f"{'Yes' if denies else 'No'}. {false}"
    return PlantedError(asked, reply, 0, len(reply))


def of_case(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Add a fact about the user's own case that the user never told."""
    day, year = generator.randint(*_DAY), generator.randint(*_YEAR)
    date = f"{day} {generator.choice(_MONTHS)} {year}"
    return _inserted(clean, generator.choice(_FACTS).format(date=date), generator)


def of_step(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Add a step that the documents do not have."""
    names = [
        ("the " if follows_the(sentence, item) else "") + item.text
        for sentence in whole_sentences(clean.reply)
        for item in find_items(sentence)
        if item.kind == "name"
    ]
    step = generator.choice(_STEPS)
    if "{name}" in step and not names:
        return None
    return _inserted(
        clean,
        step.format(
            letter=generator.choice("BCDFGK"),
            number=generator.randint(13, 48),
            word=generator.choice(("three", "four", "six")),
            name=generator.choice(names) if names else "",
        ),
        generator,
    )


def of_number(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Change an amount, period or count."""
    return _one_edit(clean, lambda sentence: edits.number_edits(sentence, generator), generator)


def of_date(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Change a date."""
    return _one_edit(clean, lambda sentence: edits.date_edits(sentence, generator), generator)


def of_name(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Replace a name with another one of the documents."""
    return _one_edit(clean, lambda sentence: edits.name_edits(sentence, library, generator), generator)


def of_unit(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Change the unit of an amount or period."""
    return _one_edit(clean, lambda sentence: edits.unit_edits(sentence, generator), generator)


def of_reference(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Cite a section or phone number that does not exist."""
    return _one_edit(clean, lambda sentence: edits.reference_edits(sentence, generator), generator)


def of_negation(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Say the opposite."""

    def found(sentence: str) -> Iterable[Edit]:
        edit = edits.negated(sentence)
        return () if edit is None else (edit,)

    return _one_edit(clean, found, generator)


def of_contradiction(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Contradict a right statement that the chatbot made a turn before."""
    asked = asked_again(clean)
    if asked is None:
        return None
    return of_number(asked, library, generator) or of_negation(asked, library, generator)


def asked_again(clean: Clean) -> Clean | None:
    """Return the reply as one that the chatbot gave a turn before, too; None where there is no such turn."""
    if clean.turn == 0:
        return None
    *before, last = clean.history
    said = Message(role="assistant", text=f"{last.text} {clean.reply}".strip())
    return replace(clean, history=(*before, said), question="Can you confirm that once more?")


def of_generality(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Say of all, or always, what is true of some, or sometimes."""
    return _one_edit(clean, edits.general_edits, generator)


KINDS: Mapping[str, Rule] = {
    "other-rule": of_another_rule,
    "wrong-body": of_another_body,
    "condition": of_condition,
    "yes-for-no": of_answer,
    "case-fact": of_case,
    "step": of_step,
    "number": of_number,
    "date": of_date,
    "name": of_name,
    "unit": of_unit,
    "reference": of_reference,
    "negation": of_negation,
    "contradiction": of_contradiction,
    "generality": of_generality,
}
"""Kind → its rule, in the order of the tables."""


def _one_edit(
    clean: Clean, found: Callable[[str], Iterable[Edit]], generator: random.Random
) -> PlantedError | None:
    """Make one of the edits that a rule finds in the whole sentences of the reply."""
    options = [
        (region, edit)
        for region in sentences(clean.reply)
        if whole_sentences(sentence := region.of(clean.reply)) == (sentence,)
        for edit in found(sentence)
    ]
    if not options:
        return None
    region, edit = generator.choice(options)
    return _replaced(clean, Edit(region.start + edit.start, region.start + edit.end, edit.text))


def _replaced(clean: Clean, edit: Edit) -> PlantedError:
    """Make the edit; the wrong words are the new ones, without the spaces around them."""
    start = edit.start + len(edit.text) - len(edit.text.lstrip())
    return PlantedError(clean, edit.of(clean.reply), start, edit.start + len(edit.text.rstrip()))


def _inserted(clean: Clean, sentence: str, generator: random.Random) -> PlantedError:
    after: Region = generator.choice(sentences(clean.reply))
    return _replaced(clean, Edit(after.end, after.end, f" {sentence}"))

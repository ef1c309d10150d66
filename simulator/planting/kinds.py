"""The kinds of errors. Each takes a clean reply and returns it with an error, or None if it has no place.

The first six are what small chatbots do: seen in 66 labelled replies of ours. The others are what detectors
are commonly tested with.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.text import edits
from hallulab.scenarios.text.edits import Edit, SentenceBank, find_whole_sentences, is_after_the
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.spans import Region, split_sentences
from hallulab.scenarios.transcript import Message
from hallulab.simulator.planting.material import Clean, strip_title


@dataclass(frozen=True)
class PlantedError:
    """A clean reply, and the same with an error."""

    clean: Clean
    """The twin; its question or history may differ from those that were given."""
    reply: str
    start: int
    """First character of the wrong words."""
    end: int


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


def require_kinds(kinds: Iterable[str], known: Collection[str]) -> None:
    """Raise UsageError unless all kinds that `--kinds` names are known."""
    for kind in kinds:
        if kind not in known:
            near = suggest_name(kind, known)
            raise UsageError(
                f"--kinds {kind}: there is no such kind{near}. Give some of: {', '.join(known)}."
            )


def make_edit_rule(find: Callable[[str, SentenceBank, random.Random], Iterable[Edit]]) -> Rule:
    """Return the rule that makes one of the edits that are found in the whole sentences of a reply."""

    def apply(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
        return _make_one_edit(clean, lambda sentence: find(sentence, library, generator), generator)

    return apply


def _make_one_edit(
    clean: Clean, found: Callable[[str], Iterable[Edit]], generator: random.Random
) -> PlantedError | None:
    options = [
        (region, edit)
        for region in split_sentences(clean.reply)
        if find_whole_sentences(sentence := region.of(clean.reply)) == (sentence,)
        for edit in found(sentence)
    ]
    if not options:
        return None
    region, edit = generator.choice(options)
    return _apply_edit(clean, Edit(region.start + edit.start, region.start + edit.end, edit.text))


change_condition = make_edit_rule(lambda sentence, *_: edits.generate_condition_edits(sentence))
"""Drop or reverse a condition."""
change_number = make_edit_rule(
    lambda sentence, _, generator: edits.generate_number_edits(sentence, generator)
)
"""Change an amount, period or count."""
change_date = make_edit_rule(lambda sentence, _, generator: edits.generate_date_edits(sentence, generator))
replace_name = make_edit_rule(edits.name_edits)
change_unit = make_edit_rule(lambda sentence, _, generator: edits.generate_unit_edits(sentence, generator))
"""Change the unit of an amount or period."""
change_reference = make_edit_rule(
    lambda sentence, _, generator: edits.generate_reference_edits(sentence, generator)
)
"""Cite a section or phone number that does not exist."""
change_negation = make_edit_rule(lambda sentence, *_: filter(None, [edits.build_negation(sentence)]))
change_generality = make_edit_rule(lambda sentence, *_: edits.generate_general_edits(sentence))
"""Say of all, or always, what is true of some, or sometimes."""


def replace_rule(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Replace one of the reply's sentences with one of another section."""
    here = {section for section, sentence in library.sentences if sentence in clean.evidence}
    others = [
        sentence
        for section, sentence in library.rules
        if section not in here and sentence not in clean.evidence
    ]
    if not others:
        return None
    region = generator.choice(split_sentences(clean.reply))
    return _apply_edit(clean, Edit(region.start, region.end, generator.choice(others)))


def replace_detail(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Replace a contact, deadline or amount with one that the evidence has for something else."""
    offered = [
        (sentence, item)
        for passage in clean.passages
        for sentence in find_whole_sentences(strip_title(passage))
        for item in find_items(sentence)
        if item.kind in ("contact", "quantity", "date")
    ]

    def find_edits(sentence: str) -> Iterator[Edit]:
        words, keys = set(sentence.lower().split()), {item.key for item in find_items(sentence)}
        for item in find_items(sentence):
            for elsewhere, other in offered:
                same_form = item.kind == other.kind != "name" and _get_form(item) == _get_form(other)
                others = set(elsewhere.lower().split())
                is_similar = len(words & others) > _SAME * min(len(words), len(others))
                if same_form and other.key not in keys and not is_similar:
                    yield Edit(item.start, item.end, other.text)

    return _make_one_edit(clean, find_edits, generator)


def _get_form(item: Item) -> str:
    """Return the form of an item: unit of amounts; mail, web or phone of contacts; words of dates."""
    if item.kind == "contact":
        letters = any(letter.isalpha() for letter in item.key)
        return "mail" if "@" in item.key else "web" if letters else "phone"
    if item.kind == "date":
        return str(len(item.key.split()))
    return item.key.partition(" ")[2] + (" currency" if item.text[:1] in "R₹$€£" else "")


def change_answer(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Ask whether a sentence holds, and answer yes for no or no for yes."""
    options = [
        (sentence, edit)
        for sentence in find_whole_sentences(clean.reply)
        if (edit := edits.build_negation(sentence)) is not None
    ]
    if not options:
        return None
    true, edit = generator.choice(options)
    false = edit.of(true)
    # Where the edit takes a `not` out, the sentence without it is asked about: the right answer is No.
    denies = "not" in true[edit.start : edit.end] and len(edit.text) < edit.end - edit.start
    asked = replace(
        clean,
        question=f"Is this right: {false if denies else true}",
        reply=f"{'No' if denies else 'Yes'}. {true}",
    )
    reply = f"{'Yes' if denies else 'No'}. {false}"
    return PlantedError(asked, reply, 0, len(reply))


def add_case_fact(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Add a fact about the user's own case that the user never told."""
    day, year = generator.randint(*_DAY), generator.randint(*_YEAR)
    date = f"{day} {generator.choice(_MONTHS)} {year}"
    return _insert_sentence(clean, generator.choice(_FACTS).format(date=date), generator)


def add_step(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Add a step that the documents do not have."""
    names = [
        ("the " if is_after_the(sentence, item) else "") + item.text
        for sentence in find_whole_sentences(clean.reply)
        for item in find_items(sentence)
        if item.kind == "name"
    ]
    step = generator.choice(_STEPS)
    if "{name}" in step and not names:
        return None
    return _insert_sentence(
        clean,
        step.format(
            letter=generator.choice("BCDFGK"),
            number=generator.randint(13, 48),
            word=generator.choice(("three", "four", "six")),
            name=generator.choice(names) if names else "",
        ),
        generator,
    )


def add_contradiction(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Contradict a right statement that the chatbot made a turn before."""
    asked = ask_again(clean)
    if asked is None:
        return None
    return change_number(asked, library, generator) or change_negation(asked, library, generator)


def ask_again(clean: Clean) -> Clean | None:
    """Return the reply as one that the chatbot gave a turn before, too; None where there is no such turn."""
    if clean.turn == 0:
        return None
    *before, last = clean.history
    said = Message(role="assistant", text=f"{last.text} {clean.reply}".strip())
    return replace(clean, history=(*before, said), question="Can you confirm that once more?")


KINDS: Mapping[str, Rule] = {
    "other-rule": replace_rule,
    "wrong-body": replace_detail,
    "condition": change_condition,
    "yes-for-no": change_answer,
    "case-fact": add_case_fact,
    "step": add_step,
    "number": change_number,
    "date": change_date,
    "name": replace_name,
    "unit": change_unit,
    "reference": change_reference,
    "negation": change_negation,
    "contradiction": add_contradiction,
    "generality": change_generality,
}


def _apply_edit(clean: Clean, edit: Edit) -> PlantedError:
    """Make the edit; the wrong words are the new ones, without the spaces around them."""
    start = edit.start + len(edit.text) - len(edit.text.lstrip())
    return PlantedError(clean, edit.of(clean.reply), start, edit.start + len(edit.text.rstrip()))


def _insert_sentence(clean: Clean, sentence: str, generator: random.Random) -> PlantedError:
    after: Region = generator.choice(split_sentences(clean.reply))
    return _apply_edit(clean, Edit(after.end, after.end, f" {sentence}"))

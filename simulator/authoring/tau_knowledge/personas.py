"""Make a persona of a customer of tau-Knowledge: name, case, facts, goals, manner and summary, by rules."""

from __future__ import annotations

import re

from hallulab.scenarios.packs.pack import Persona
from hallulab.simulator.authoring.tau_knowledge.goals import word_goals
from hallulab.simulator.authoring.tau_knowledge.instructions import (
    Instructions,
    drop_brackets,
    read_instructions,
    split_sentences,
)
from hallulab.simulator.authoring.tau_knowledge.third_person import Pronouns, choose_pronouns, speak_about

_NAMED = re.compile(r"(?P<role>an? .+?) named (?P<name>[A-Z][\w'-]*(?: [A-Z][\w'-]*)*)(?P<more>.*)")
_FIRST = re.compile(r"(?P<name>[A-Z][\w'-]*(?: [\w'-]+){0,4}), (?P<role>an? .+|the .+)")
_MOOD = re.compile(
    r"\b(?:adversarial|calm|confused|desperate|detail-oriented|distressed|excited|frustrat\w+|(?<!-)friendly|impatient"
    r"|methodical|meticulous|panick?\w+|patient|polite\w*|skeptical|stressed|upset|worried|brag|upfront)\b"
)
_BEHAVIOUR = re.compile(r"Be (?P<manner>(?:[\w-]+,? ){0,5}[\w-]+?)(?: when\b.*| about\b.*| if\b.*|:.*|\.?)")
_NO_MANNER = ("specific", "clear", "cooperative")
_KEPT_BACK = re.compile(
    r"\bonly provide\b|\bdon't dump\b|\bnever volunteer\b|\bprovide what they ask\b|\bwhen asked\b"
)
_FACT = re.compile(
    r"Your (?:[\w']+ ){0,3}(?:account ID|address|birth|code|email|ID|income|name|number|phone|score)\b"
    r"|You (?:do not|don't) (?:know|have a Rho-Bank\+)|You receive a Rho-Bank\+"
    r"|You have a (?:credit score|Rho-Bank\+)"
)
_SHORT_NAMES = {
    "DOB": "date of birth",
    "Phone": "phone number",
    "Email": "e-mail",
    "Name": "name",
    "Address": "address",
}
_MAIL = re.compile(r"@[a-z0-9-]{1,60}(?:\.[a-z0-9-]{1,60}){1,4}\b", re.IGNORECASE)
"""The domain of a mail address: the customers are invented, and their addresses may be somebody's."""
_WANTED = re.compile(r"Resolution you want: (.+)")
_CHARGE = re.compile(r"(?P<charge>.+?\d{4}) - (?P<kind>[^.]+)\. (?P<rest>.+)")


class UnreadableCustomer(ValueError):
    """Instructions of which the rules make no persona; says what is missing."""


def make_persona(identifier: str, instructions: str, sector: str | None) -> Persona:
    """Make the persona of a customer.

    Args:
        identifier: its id in the pack.
        instructions: the text of `user_scenario.instructions`.
        sector: the sector of the documents that answer.

    Raises:
        UnreadableCustomer: the instructions have no name or no goal.
    """
    read = read_instructions(instructions)
    name, about = _read_character(read.character)
    if not name:
        raise UnreadableCustomer("its instructions do not say `Your character: NAME, a …`")
    person = choose_pronouns(name, read.character)
    goals = word_goals(read, person)
    if not goals:
        raise UnreadableCustomer("its instructions have no goal that the rules can read")
    wanted = [f"{goal[:1].lower()}{goal[1:]}" for goal in goals]
    then = "".join(f" Then {person.subject} wanted to {goal}." for goal in wanted[1:])
    story = [one for one in read.story if not _FACT.match(one) and not _MOOD.search(one)]
    case = [about, *(drop_brackets(speak_about(one, person)) for one in story)]
    return Persona(
        id=identifier,
        name=name,
        sector=sector,
        grievance=" ".join(_end(one) for one in case if one)[:2000].strip() or f"{name} is a customer.",
        goals=goals,
        facts=_list_facts(read, person),
        manner=_describe_manner(read, person),
        summary=f"The user told what had happened and wanted to {wanted[0]}.{then}",
    )


def _read_character(sentence: str) -> tuple[str, str]:
    """Return the customer's name, and a sentence that says who they are."""
    plain = re.sub(r"^(?:Your character is|You are) ", "", sentence).rstrip(". ")
    if found := _NAMED.fullmatch(plain):
        role = re.sub(r"^a (?=[aeiou])", "an ", found["role"])
        return found["name"], drop_brackets(f"{found['name']} is {role}{found['more']}")
    if found := _FIRST.fullmatch(plain):
        return found["name"], drop_brackets(f"{found['name']} is {found['role']}")
    return "", ""


def _list_facts(read: Instructions, person: Pronouns) -> tuple[str, ...]:
    said = [fact for one in read.story if _FACT.match(one) for fact in [drop_brackets(one)]]
    facts = [*map(_shorten_fact, read.facts), *said]
    made = [
        _MAIL.sub("@example.com", speak_about(one, person)).rstrip(".! ")
        for one in facts
        if one and not re.match(r"Your (?:full )?name\b", one)
    ]
    return tuple(dict.fromkeys(one for one in made if one))


def _shorten_fact(entry: str) -> str:
    """Return an entry of a list as one short statement to the customer; empty if it is an order."""
    if re.search(r"\bagent\b|\bcharges? that\b", entry):
        return ""
    if wanted := _WANTED.fullmatch(entry):
        return f"You want a {wanted[1]}"
    if charge := _CHARGE.fullmatch(entry):
        first = split_sentences(charge["rest"])[0].rstrip(". ")
        kind = re.sub(r"^This (?:is|was) (?:an? )?", "", charge["kind"])
        return f"{charge['charge']}: {kind[:1].lower()}{kind[1:]}; {first[:1].lower()}{first[1:]}"
    plain = " ".join(split_sentences(drop_brackets(entry))[:2])
    key, colon, value = plain.partition(":")
    key = re.sub(r"^Your | is$", "", key)
    key = _SHORT_NAMES.get(key, key)
    if colon and len(key.split()) <= 3 and value.strip() and plain.startswith(("Your ", *_SHORT_NAMES)):
        return f"Your {key} is {value.strip()}"
    return re.sub(r" is: ", " is ", plain)


def _describe_manner(read: Instructions, person: Pronouns) -> str:
    moods = [speak_about(one, person) for one in read.story if _MOOD.search(one)]
    for line in read.behaviour:
        found = _BEHAVIOUR.fullmatch(line)
        if found and not found["manner"].startswith(_NO_MANNER):
            manner = speak_about(found["manner"], person)
            moods.append(manner[:1].upper() + manner[1:])
        elif opening := re.match(r"Opening \((?!mention)(?:be )?([\w -]+)\)", line, re.IGNORECASE):
            moods.append(f"{opening[1].capitalize()} at first")
    if any(_KEPT_BACK.search(one.lower()) for one in read.behaviour):
        moods.append("Gives details only when asked")
    return " ".join(_end(one) for one in dict.fromkeys(moods)) or "Polite and brief."


def _end(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."

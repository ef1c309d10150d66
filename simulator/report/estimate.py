"""The cost of a whole experiment, estimated from two personas: `hallulab run --estimate`.

The two are the experiment's first. Each of them has its conversations with every chatbot, and these are
judged. Users differ, so every number has a range: that of all users being like the cheaper, or like the
dearer of the two. It is no interval: two personas do not show how far others are from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from rich.console import Console

from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.wording import choose_noun, format_count
from hallulab.scenarios.transcript import Call, Frozen
from hallulab.simulator.metrics.costs import collect_calls
from hallulab.simulator.metrics.spending import sum_calls
from hallulab.simulator.records.choices import count_users
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_fields import Prices, compute_money
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.show.columns import Column
from hallulab.simulator.show.document import GroupedTable, Paragraph, ShownDocument
from hallulab.simulator.show.terminal import print_document


class Range(Frozen):
    """A number that is expected of the whole experiment."""

    expected: float
    """If all users are as the personas that were played, on average."""
    low: float
    """If all are as the cheapest of them."""
    high: float
    """If all are as the dearest."""


class RoleEstimate(Frozen):
    """Expected cost of one role of the whole experiment."""

    role: str
    """`user`, `chatbot` or `detector`; `all` for all together."""
    name: str
    """Name of the chatbot or detector; for `user`, of the chatbot it talks to."""
    calls: Range
    prompt_tokens: Range | None
    """Tokens read; None: a server did not report them."""
    completion_tokens: Range | None
    """Tokens written; None: likewise."""
    tokens: Range | None
    money: Range | None
    """By the experiment's `prices`; None: it is not known."""


class CostEstimate(Frozen):
    """Expected cost of a whole experiment."""

    users: int
    """Users that talk with every chatbot."""
    chatbots: int
    played: int
    priced: bool
    roles: tuple[RoleEstimate, ...]
    """By role and name, all together last."""


_Calls = Mapping[str, Sequence[Call]]
"""Persona → its calls."""


def estimate(folder: RunFolder, experiment: Experiment, scenario: Scenario) -> CostEstimate:
    """Return what the whole experiment will cost by the personas that a folder has."""
    journals = folder.read_all_journals()
    persona_of: dict[str, str] = {}
    calls: dict[tuple[str, str], dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
    for conversation in folder.read_conversations():
        persona_of[conversation.id] = conversation.persona
        for call in collect_calls(conversation):
            calls[call.role, conversation.chatbot][conversation.persona].append(call)
    for verdict in journals.verdicts:
        persona = persona_of.get(verdict.conversation)
        if persona is not None:
            calls["detector", verdict.detector][persona].extend(verdict.calls)
    personas = sorted(set(persona_of.values()))
    users = count_users(experiment, scenario)
    every: dict[str, list[Call]] = defaultdict(list)
    for by_persona in calls.values():
        for persona, some in by_persona.items():
            every[persona] += some
    lines = [*sorted(calls.items()), (("all", ""), every)]
    return CostEstimate(
        users=users,
        chatbots=len(experiment.chatbots),
        played=len(personas),
        priced=bool(experiment.prices),
        roles=tuple(
            _estimate_role(
                role, name, [by_persona.get(one, []) for one in personas], users, experiment.prices
            )
            for (role, name), by_persona in lines
        ),
    )


def _estimate_role(
    role: str, name: str, calls: Sequence[Sequence[Call]], users: int, prices: Prices
) -> RoleEstimate:
    spent = [sum_calls(some) for some in calls]
    reported = all(not one.untold for one in spent)
    return RoleEstimate(
        role=role,
        name=name,
        calls=build_range([one.calls for one in spent], users) or Range(expected=0, low=0, high=0),
        prompt_tokens=build_range([one.prompt_tokens for one in spent], users) if reported else None,
        completion_tokens=build_range([one.completion_tokens for one in spent], users) if reported else None,
        tokens=build_range([one.all_tokens for one in spent], users),
        money=build_range([compute_money(some, prices) for some in calls], users) if prices else None,
    )


def build_range(numbers: Iterable[float | None], users: int) -> Range | None:
    """Multiply the numbers of some personas by the number of users; None where one is not known."""
    found = list(numbers)
    known = [number for number in found if number is not None]
    if not known or len(known) < len(found):
        return None
    return Range(expected=sum(known) / len(known) * users, low=min(known) * users, high=max(known) * users)


def _format_expected(value: Range | None) -> str:
    return "unknown" if value is None else f"{value.expected:,.0f}"


def _format_range(value: Range | None, decimals: int = 0) -> str:
    if value is None:
        return "unknown"
    expected, low, high = (f"{one:,.{decimals}f}" for one in (value.expected, value.low, value.high))
    return f"{expected} [{low}, {high}]"


_COLUMNS = (
    Column("Role", "role", "simulated user of a chatbot, chatbot or detector", kind="text", short="Role"),
    Column("Name", "name", "name of the chatbot or detector", kind="name", short="Name"),
    Column("Calls", "calls", "model calls", _format_expected, short="Calls"),
    Column("Prompt tokens", "prompt_tokens", "tokens read", _format_expected, short="Read"),
    Column("Completion tokens", "completion_tokens", "tokens written", _format_expected, short="Written"),
    Column("Tokens", "tokens", "tokens read and written", _format_range, short="Tokens"),
)
_MONEY = Column(
    "Money",
    "money",
    "what they cost by the experiment's `prices`",
    partial(_format_range, decimals=4),
    short="Money",
)


def print_estimate(found: CostEstimate, folder: RunFolder, console: Console | None = None) -> None:
    """Print what the whole experiment will cost, and where the personas that were played are."""
    heading = (
        f"{format_count(found.users, 'user')} with {format_count(found.chatbots, 'chatbot')} each, "
        f"estimated from {format_count(found.played, 'persona')}:"
    )
    noun = choose_noun(found.played, "persona is", "personas are")
    sentences = [
        "In brackets: if all users were as the cheapest, or as the dearest of those played. Others may cost "
        "less or more.",
        *([] if found.priced else ["Money is unknown: the experiment has no `prices` (docs/experiment.md)."]),
        f"The {noun} in {folder.path}; the same command without --estimate goes on from there, with --out "
        f"{folder.path}.",
    ]
    table = GroupedTable((*_COLUMNS, _MONEY) if found.priced else _COLUMNS, [found.roles], heading)
    print_document(ShownDocument("run", "Estimate", lead=[table, *map(Paragraph, sentences)]), console)

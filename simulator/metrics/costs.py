"""Costs of a run: by role, and of a conversation on average."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal

from hallulab.scenarios.text.wording import NOTHING, join_names, shorten_line
from hallulab.scenarios.transcript import Call, Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.lengths import LENGTHS, LengthSection
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.metrics.spending import Spending, sum_calls
from hallulab.simulator.records.experiment_fields import compute_money
from hallulab.simulator.show.columns import GROUPED, Column, build_decimal_format, build_grouped_format
from hallulab.simulator.show.document import GroupedTable, Heading, Paragraph, Section
from hallulab.simulator.statistics.intervals import Rounded
from hallulab.simulator.statistics.sums import ExactSum

BASELINE = "vanilla"
"""The chatbot that costs are relative to (HalluDetect B.8)."""


class Cost(Frozen):
    """Costs of one role over the whole run: a line of `ledger` in `report.json`."""

    role: str
    """`user`, `chatbot` or `detector`, or the role that the call itself names."""
    name: str
    """Name of the chatbot or detector; for `user`, of the chatbot it talked to."""
    calls: int
    """Model calls, failed and replayed ones included."""
    failed: int
    replayed: int
    """Calls answered from a recording or an equal request; their recorded cost is counted here."""
    uncounted: int
    """Calls whose tokens the server did not report; the sums lack them."""
    prompt_tokens: int | None
    """Tokens read; None when no server reported them."""
    completion_tokens: int | None
    """Tokens written; None when no server reported them."""
    cached_tokens: int | None
    """Prompt tokens from the server's prefix cache; None when no server reported them."""
    seconds: Rounded
    """Sum of latencies. Calls run at the same time, so this is no wall time."""
    money: Rounded | None = None
    """Costs of the calls by the experiment's `prices`; None: it is not known of one of them."""


class Efficiency(Frozen):
    """Average cost a conversation: the table of HalluDetect B.8."""

    role: Literal["chatbot", "detector"]
    name: str
    conversations: int
    on: str
    """Whose conversations: a chatbot's own; for a detector Vanilla's, or `all` in a run without Vanilla."""
    calls_per_chat: Rounded | None
    tokens_per_chat: Rounded | None
    """Mean of prompt plus completion tokens; None where a server did not report those of an answered call."""
    seconds_per_chat: Rounded | None
    relative_to_vanilla: Rounded | None
    """tokens_per_chat over the Vanilla chatbot's (the user's calls count in neither): for a chatbot, that of
    all Vanilla's conversations; for a detector, that of those it judged. None without it."""


MONEY = Column("Money", "money", "cost of the calls by the experiment's `prices`, also of replayed and "
               "shared ones; unknown if a price or a number of tokens is missing",
               lambda value: "unknown" if value is None else f"{value:,.4f}")  # fmt: skip

LEDGER = (
    Column("Role", "role", "simulated user of a chatbot, chatbot or detector",
           lambda role: "user of" if role == "user" else str(role), kind="text"),
    Column("Name", "name", "name of the chatbot or detector", kind="name"),
    Column("Calls", "calls", "model calls, failed and replayed ones too", GROUPED),
    Column("Failed", "failed", "calls without an answer", GROUPED, warns=bool),
    Column("Replayed", "replayed", "calls answered from a recording or an equal request",
           GROUPED),
    Column("Prompt tokens", "prompt_tokens", "tokens read, as far as servers reported them",
           GROUPED),
    Column("of these cached", "cached_tokens", "those from the server's prefix cache",
           GROUPED),
    Column("Completion tokens", "completion_tokens", "tokens written, as far as servers reported them",
           GROUPED),
    Column("Seconds", "seconds", "sum of latencies; calls overlap, so the run took less",
           build_grouped_format(1)),
    MONEY,
)  # fmt: skip


EFFICIENCY = (
    Column("What", "role", "chatbot or detector", kind="text"),
    Column("Name", "name", "its name", kind="name"),
    Column("On chats of", "on",
           "conversations: a chatbot's own; for a detector Vanilla's, or all without Vanilla", kind="text"),
    Column("Chats", "conversations", "conversations averaged over"),
    Column("Calls / chat", "calls_per_chat", "mean number of model calls a conversation",
           build_decimal_format(1)),
    Column("Tokens / chat", "tokens_per_chat",
           "mean prompt and completion tokens of a conversation; a dash if unreported", GROUPED),
    Column("Seconds / chat", "seconds_per_chat", "mean sum of latencies a conversation",
           build_decimal_format(1)),
    Column("Tokens relative to Vanilla", "relative_to_vanilla",
           "tokens / chat over Vanilla's: for a detector, those of Vanilla's conversations that it judged",
           lambda value: NOTHING if value is None else f"{value:.2f}×"),
)  # fmt: skip


class CostSection(Frozen):
    """Fields of `report.json`."""

    ledger: tuple[Cost, ...]
    efficiency: tuple[Efficiency, ...]
    """Costs of a conversation."""
    priced: bool = False
    """True where the experiment has `prices`."""
    money: Rounded | None = None
    """Costs of the run by them; None: without them, or it is not known of a call."""
    unpriced: tuple[str, ...] = ()
    """Models of calls whose cost is not known, although there are prices."""


class CostMetric(Metric):
    """Adds up the costs of a run."""

    SECTION = CostSection
    TABLES = (("Cost by role", LEDGER), ("Cost of a conversation", EFFICIENCY))
    ORDER = 90
    COUNTS = ("_roles", "_own", "_judging", "_judged", "_money", "_unpriced")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._roles: dict[tuple[str, str], Spending] = defaultdict(Spending)
        self._own: dict[str, Spending] = defaultdict(Spending)
        """Chatbot → what it cost itself."""
        self._judging: dict[tuple[str, bool], Spending] = defaultdict(Spending)
        """Detector, and whether on Vanilla's conversations alone."""
        self._judged: dict[str, Spending] = defaultdict(Spending)
        """Detector → what Vanilla cost on the conversations that it judged."""
        self._money: dict[tuple[str, str], ExactSum] = defaultdict(ExactSum)
        """By role and name, of the calls whose cost is known."""
        self._unpriced: dict[tuple[str, str], set[str]] = defaultdict(set)
        """By role and name: the models of the other calls."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Add the calls of a conversation and of the verdicts on it."""
        calls: dict[str, list[Call]] = defaultdict(list)
        for call in collect_calls(conversation):
            calls[call.role].append(call)
        for role, found in calls.items():
            self._roles[role, conversation.chatbot].add(sum_calls(found))
            self._price(role, conversation.chatbot, found)
        own = sum_calls(calls.get("chatbot", ()))
        self._own[conversation.chatbot].add(own)
        for detector, turns in verdicts.items():
            asked = [call for verdict in turns.values() for call in verdict.calls]
            judging = sum_calls(asked)
            self._price("detector", detector, asked)
            self._roles["detector", detector].add(judging)
            self._judging[detector, False].add(judging)
            if conversation.chatbot == BASELINE:
                self._judging[detector, True].add(judging)
                self._judged[detector].add(own)

    def _price(self, role: str, name: str, calls: Sequence[Call]) -> None:
        if not self.run.prices:
            return
        for call in calls:
            money = compute_money([call], self.run.prices)
            if money is None:
                self._unpriced[role, name].add(call.model)
            else:
                self._money[role, name].add(money)

    def _get_money(self, role: str, name: str) -> float | None:
        if not self.run.prices or self._unpriced.get((role, name)):
            return None
        return self._money[role, name].value()

    def result(self, tallied: Tallied) -> CostSection:
        """Return both tables."""
        ledger = self.ledger()
        money = [line.money for line in ledger]
        known = [one for one in money if one is not None]
        return CostSection(
            ledger=ledger,
            efficiency=self.efficiency(),
            priced=bool(self.run.prices),
            money=math.fsum(known) if self.run.prices and len(known) == len(money) else None,
            unpriced=tuple(sorted(set().union(*self._unpriced.values()))),
        )

    def ledger(self) -> tuple[Cost, ...]:
        """Return the costs by who made the calls, sorted by role and name."""
        found = []
        for role, name in sorted(self._roles):
            values = asdict(self._roles[role, name].total())
            del values["untold"]
            found.append(Cost(role=role, name=name, **values, money=self._get_money(role, name)))
        return tuple(found)

    def efficiency(self) -> tuple[Efficiency, ...]:
        """Average the cost of a conversation for each chatbot and detector, relative to the Vanilla chatbot.

        The paper measures detectors on the Vanilla chatbot's conversations, and so do we. Only conversations
        with a verdict of the detector count, and Vanilla's own cost is that of the same conversations. A
        chatbot is held against all of Vanilla's conversations, even if it has fewer itself.
        """
        vanilla = BASELINE in self.run.chatbots and BASELINE in self._own
        average = _compute_tokens_per_chat(self._own[BASELINE]) if vanilla else None
        lines = [
            _build_efficiency("chatbot", name, name, self._own[name], average) for name in self.run.chatbots
        ]
        for name in self.run.detectors:
            same = _compute_tokens_per_chat(self._judged[name]) if vanilla else None
            on = BASELINE if vanilla else "all"
            lines.append(_build_efficiency("detector", name, on, self._judging[name, vanilla], same))
        return tuple(lines)

    @classmethod
    def footnotes(cls, report: RunReport) -> Sequence[str]:
        """Tell what the run cost, or why that is unknown; nothing without prices."""
        costs = report.of(CostSection)
        if not costs.priced:
            return []
        if costs.money is not None:
            return [f"By its `prices`, the run cost {costs.money:,.4f}."]
        names = join_names([shorten_line(model) for model in costs.unpriced])
        return [f"The costs of the run are unknown: prices or tokens are missing for {names}."]

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show what roles and conversations cost, and how long conversations were; nothing without a call."""
        costs = report.of(CostSection)
        if not any(one.calls for one in costs.ledger):
            return None
        columns = LEDGER if costs.priced else tuple(one for one in LEDGER if one is not MONEY)
        parts: tuple[Heading | GroupedTable | Paragraph, ...] = (
            Heading("By role"),
            GroupedTable(columns, [costs.ledger]),
            Paragraph("Seconds are latencies added up; requests run at the same time, so the run took less."),
            *(Paragraph(sentence) for sentence in cls.footnotes(report)),
            Heading("Per conversation"),
            GroupedTable(EFFICIENCY, [[one for one in costs.efficiency if one.calls_per_chat]]),
            Heading("Length of conversations"),
            GroupedTable(LENGTHS, [report.of(LengthSection).conversations]),
        )
        return Section("costs", "Cost", parts, "Cost")


def collect_calls(conversation: Conversation) -> list[Call]:
    """Return every call of a conversation but those of detectors, the turns' first."""
    return [call for turn in conversation.turns for call in turn.calls] + list(conversation.calls)


def _build_efficiency(
    role: Literal["chatbot", "detector"], name: str, on: str, spending: Spending, baseline: float | None
) -> Efficiency:
    tokens, total, chats = _compute_tokens_per_chat(spending), spending.total(), spending.chats
    return Efficiency(
        role=role,
        name=name,
        conversations=chats,
        on=on,
        calls_per_chat=round(total.calls / chats, 6) if chats else None,
        tokens_per_chat=tokens,
        seconds_per_chat=round(total.seconds / chats, 6) if chats else None,
        relative_to_vanilla=tokens / baseline if tokens is not None and baseline else None,
    )


def _compute_tokens_per_chat(spending: Spending) -> float | None:
    """Return the mean; None where the tokens of an answered call are not known."""
    tokens = spending.total().all_tokens
    return None if tokens is None or not spending.chats else tokens / spending.chats

"""Flaws of the simulated user, and the numbers without the conversations that have any."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from markupsafe import Markup

from hallulab.scenarios.text.languages import NAMES
from hallulab.scenarios.text.wording import choose_noun, format_count, shorten_line
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector, Row
from hallulab.simulator.metrics.metric import Flaws, Metric, RunFacts, Tallied
from hallulab.simulator.metrics.results import HPT, TOKACC, build_rows, explain_sign, mark_self_judged
from hallulab.simulator.metrics.run_report import RunReport
from hallulab.simulator.show.columns import TWO_DECIMALS, Column, build_decimal_format
from hallulab.simulator.show.document import GroupedTable, Paragraph, Part, Section

_WITHOUT = "the same without conversations of flawed simulated users"
_POINTS = build_decimal_format(1, 100)


class Audit(Frozen):
    """Flaws of the simulated user, and the numbers without the conversations that have any."""

    conversations: int
    affected_conversations: int
    """Conversations with at least one flaw."""
    flaws: dict[str, int]
    affected: dict[str, dict[str, int]]
    """Affected conversations by kind, for each chatbot that has any."""
    rows_without_affected: tuple[Row, ...]
    """The rows of the report, recomputed without the affected conversations."""


COLUMNS = (
    Column(
        "Chatbot",
        "all.chatbot",
        "name of the chatbot",
        kind="name",
        sign=lambda row: explain_sign(row["all"]),
    ),
    Column("Detector", "all.detector", "name of the detector", kind="text"),
    Column("Chats, all", "all.conversations", "conversations of the chatbot"),
    Column("without", "without.conversations", _WITHOUT),
    Column("HPT-1, all", "all.hpt_1", HPT, TWO_DECIMALS, beside="all.hpt_1_ci95"),
    Column("without", "without.hpt_1", _WITHOUT, TWO_DECIMALS, beside="without.hpt_1_ci95"),
    Column("TokAcc-1 %, all", "all.tokacc_1", TOKACC, _POINTS, beside="all.tokacc_1_ci95"),
    Column("without", "without.tokacc_1", _WITHOUT, _POINTS, beside="without.tokacc_1_ci95"),
)


class AuditSection(Frozen):
    """Fields of `report.json`."""

    unknown_personas: tuple[str, ...]
    simulator_audit: Audit
    users_language: str | None = None
    """Language that simulated users wrote, if it was not English (ISO 639-1)."""


class UserAudit(Metric):
    """Counts the flaws of the simulated user."""

    SECTION = AuditSection
    TABLES = (("With and without flaws of the simulated user", COLUMNS),)
    ORDER = 100
    COUNTS = ("_conversations", "_personas", "_affected", "_flaws", "_by_chatbot")

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._conversations = 0
        self._personas: set[str] = set()
        self._affected = 0
        self._flaws: Counter[str] = Counter()
        self._by_chatbot: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the flaws of a conversation."""
        self._conversations += 1
        self._personas.add(conversation.persona)
        if flaws:
            self._affected += 1
            self._flaws.update(flaw.kind for flaw in flaws)
            self._by_chatbot[conversation.chatbot].update({flaw.kind for flaw in flaws})

    def result(self, tallied: Tallied) -> AuditSection:
        """Compute the rows again without the conversations that have a flaw."""
        by_chatbot, known = self._by_chatbot, self.run.personas
        audit = Audit(
            conversations=self._conversations,
            affected_conversations=self._affected,
            flaws=dict(self._flaws),
            affected={name: dict(by_chatbot[name]) for name in self.run.chatbots if name in by_chatbot},
            rows_without_affected=mark_self_judged(build_rows(tallied.sums.sound), self.run.claim_checks),
        )
        unknown = set() if known is None else self._personas - set(known)
        return AuditSection(
            unknown_personas=tuple(sorted(unknown)), simulator_audit=audit, users_language=self.run.language
        )

    @classmethod
    def notes(cls, report: RunReport) -> Sequence[str]:
        """Say which flaws there are, and whom the audit does not know."""
        section = report.of(AuditSection)
        audit, unknown, found = section.simulator_audit, section.unknown_personas, []
        affected = audit.affected_conversations
        if affected:
            kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(audit.flaws.items()))
            have, them = ("has", "it") if affected == 1 else ("have", "them")
            found.append(
                f"simulated user: {affected} of {format_count(audit.conversations, 'conversation')} "
                f"{have} flaws ({kinds}); the report gives the numbers without {them} too."
            )
        if section.users_language is not None:
            found.append(
                f"simulated user: wrote {NAMES[section.users_language]}. The audit's rules for an "
                "assistant's words, advice and leaked instructions know English only; slips of manners were "
                "left out."
            )
        if unknown:
            found.append(
                f"simulated user: the audit knows nothing of {shorten_line(', '.join(unknown))}: the "
                "scenario pack is not found, or lacks them."
            )
        return found

    @classmethod
    def section(cls, report: RunReport) -> Section | None:
        """Show the rows with and without the affected conversations; nothing without a simulated user."""
        audit = report.of(AuditSection).simulator_audit
        chats = choose_noun(audit.conversations, "conversation")
        parts: list[Part]
        if report.imported:
            return None
        if not audit.affected_conversations:
            parts = [Paragraph(f"The audit found no flaw in {audit.conversations} {chats}.", "")]
        else:
            parts = [
                Paragraph(_describe_affected(audit, report.intervals.least), ""),
                GroupedTable(
                    COLUMNS,
                    [
                        [
                            {"all": row, "without": other}
                            for row, other in zip(report.rows, audit.rows_without_affected, strict=True)
                            if row.detector == name
                        ]
                        for name in report.detectors
                    ],
                ),
            ]
        return Section("audit", "Simulated user", parts, "Simulated user")


def _describe_affected(audit: Audit, least: int) -> str:
    """Say how many conversations have flaws, and what the table shows."""
    affected, lacking = (
        audit.affected_conversations,
        any(row.no_interval for row in audit.rows_without_affected),
    )
    return Markup(
        "<b>{} of {}</b> {} {} a flaw of the simulated user: {}. The numbers with and without {}{}:"
    ).format(
        affected,
        audit.conversations,
        choose_noun(audit.conversations, "conversation"),
        "has" if affected == 1 else "have",
        ", ".join(f"{kind.replace('_', ' ')} {times}" for kind, times in sorted(audit.flaws.items())),
        "it" if affected == 1 else "them",
        f" (no interval where fewer than {least} personas are left, or all have the same number)"
        if lacking
        else "",
    )

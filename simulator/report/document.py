"""`report.json`: everything a run found, as plain JSON values, equal bytes for equal journals."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agents.claim_check import ClaimChecks
from agents.models.abilities import ReadHow
from scenarios.transcript import Call, Conversation, Verdict
from simulator.measure.agreement import agreement
from simulator.measure.compare import compare
from simulator.measure.conversations import Flaws, audit_report, chat_statistics
from simulator.measure.costs import efficiency, ledger
from simulator.measure.finding import findings
from simulator.measure.metrics import rows, tally_all
from simulator.measure.self_judging import mark_self_judged
from simulator.measure.statistics import LEAST_FOR_INTERVAL

SCHEMA = 1
"""Version of the layout of `report.json`; it goes up when a field changes its meaning or goes away."""


def build_report(
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    *,
    chatbots: Sequence[str],
    detectors: Sequence[str],
    flaws: Flaws,
    personas: Collection[str] | None = None,
    claim_checks: ClaimChecks | None = None,
    read_how: Sequence[ReadHow] = (),
) -> dict[str, Any]:
    """Compute the report of a run.

    Args:
        conversations: the conversations of the run; their order does not matter.
        verdicts: the verdicts of the run; those on other conversations are left out.
        chatbots: names of all chatbots of the run, in the order of the rows.
        detectors: names of all detectors, likewise. One without verdicts has rows with coverage 0.
        flaws: what the audit of the simulated user found, by conversation id.
        personas: identifiers of the personas that the audit knew; None: there was none to know.
        claim_checks: how chatbots and detectors check claims; None: nobody knows.
        read_how: how the models' answers were read; none: nobody knows.

    Raises:
        UsageError: the journals contradict each other or hold two configurations of the same thing.
    """
    known = {item.id for item in conversations}
    ordered = sorted(conversations, key=lambda item: item.id)
    about = sorted(
        (item for item in verdicts if item.conversation in known),
        key=lambda item: (item.conversation, item.detector, item.turn),
    )
    checks = claim_checks or ClaimChecks()
    tallies = tally_all(ordered, about, chatbots, detectors)
    found = mark_self_judged(rows(tallies), checks)
    comparisons = compare(tallies, chatbots, detectors)
    audit = audit_report(ordered, tallies, flaws, chatbots)
    sound = mark_self_judged(audit.rows_without_affected, checks)
    return {
        "schema": SCHEMA,
        "intervals": {"least": LEAST_FOR_INTERVAL},
        "findings": [item.model_dump(mode="json") for item in findings(tallies, found, comparisons)],
        "rows": [item.model_dump(mode="json") for item in found],
        "comparisons": [item.model_dump(mode="json") for item in comparisons],
        "agreement": agreement(about, detectors).model_dump(mode="json"),
        "ledger": [item.model_dump(mode="json") for item in ledger(ordered, about)],
        "efficiency": [
            item.model_dump(mode="json") for item in efficiency(ordered, about, chatbots, detectors)
        ],
        "conversations": [item.model_dump(mode="json") for item in chat_statistics(ordered, chatbots)],
        "read_how": [_reading(item) for item in read_how],
        "failures": _failures(ordered, chatbots),
        "cut_replies": _cut_replies(ordered, chatbots),
        "unknown_personas": sorted(
            set() if personas is None else {item.persona for item in ordered} - set(personas)
        ),
        "simulator_audit": audit.model_copy(update={"rows_without_affected": sound}).model_dump(mode="json"),
    }


def _reading(read_how: ReadHow) -> dict[str, Any]:
    """How one model's answers were read, in words."""
    if read_how.log_probabilities:
        decisions = "log-probabilities"
    elif read_how.decision_samples == 1:
        decisions = "printed word"
    else:
        decisions = f"share of {read_how.decision_samples} printed words"
    return {
        "model": read_how.model,
        "decisions": decisions,
        "seed": read_how.seed,
        "json": "JSON schema" if read_how.json_schema else "asked for in the prompt",
        "asked": read_how.asked,
    }


def _failures(conversations: Sequence[Conversation], chatbots: Sequence[str]) -> list[dict[str, Any]]:
    """Of each chatbot with failed conversations: how many, and the error of the first by identifier."""
    found = []
    for name in chatbots:
        own = [item for item in conversations if item.chatbot == name]
        failed = [item for item in own if item.stop_reason == "error"]
        if failed:
            error = (failed[0].error or "").removeprefix(f"chatbot {name}: ")
            found.append(
                {"chatbot": name, "conversations": len(own), "failed": len(failed), "first_error": error}
            )
    return found


def _cut_replies(conversations: Sequence[Conversation], chatbots: Sequence[str]) -> list[dict[str, Any]]:
    """Of each chatbot with texts that ended at the limit of tokens: in how many replies."""
    found = []
    for name in chatbots:
        turns = [turn for item in conversations if item.chatbot == name for turn in item.turns]
        cut = sum(any(map(_was_cut, turn.calls)) for turn in turns)
        if cut:
            found.append({"chatbot": name, "replies": len(turns), "cut": cut})
    return found


def _was_cut(call: Call) -> bool:
    """Whether a chatbot's text ended at its limit; decisions have one token, queries may be cut."""
    wrote = call.purpose.startswith("chatbot.") and call.purpose != "chatbot.reformulate"
    return wrote and call.finish_reason == "length" and call.completion_tokens != 1


def report_text(report: Mapping[str, Any]) -> str:
    """The report as the text of `report.json`."""
    return json.dumps(report, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

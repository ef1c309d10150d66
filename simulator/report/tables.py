"""Columns of a run's tables, from which docs/metrics.md is made."""

from __future__ import annotations

from hallulab.scenarios.text.wording import NOTHING
from hallulab.simulator.report.columns import (
    Column,
    build_decimal_format,
    build_grouped_format,
    format_counts,
)
from hallulab.simulator.report.correct import ALL

_PERCENT = build_decimal_format(0, 100)
_HPT = "hallucinations over scored turns, all conversations together"
_TOKACC = "share of the tokens of replies that are outside every flagged span, all conversations together"
_MEAN = "the same for each conversation, then the mean"


def is_lacking(share: float | None) -> bool:
    """Return whether something is not covered."""
    return share is None or share < 1


def format_p(p: float | None) -> str:
    """Format a p-value, with a star below 0.05."""
    return NOTHING if p is None else f"{p:.3g}{' *' if p < 0.05 else ''}"


def _format_relative(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}×"


RESULTS = (
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot"),
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True),
    Column("Calls / reply", "calls_per_reply", "model calls of the chatbot a turn", build_decimal_format(1),
           short="Calls/\nreply"),
    Column("HPT-1", "hpt_1", _HPT, build_decimal_format(2), beside="hpt_1_ci95", short="HPT-1"),
    Column("HPT-2", "hpt_2", _MEAN, build_decimal_format(2), short="HPT-2"),
    Column("TokAcc-1 %", "tokacc_1", _TOKACC, build_decimal_format(1, 100), beside="tokacc_1_ci95",
           short="TokAcc-1 %"),
    Column("TokAcc-2 %", "tokacc_2", _MEAN, build_decimal_format(1, 100), short="TokAcc\n-2 %"),
    Column("Chats with hallucination %", "hallucinated_chats",
           "share of the conversations with a scored turn that have a hallucination", _PERCENT,
           short="Halluc.\nchats %"),
    Column("Coverage %", "coverage", "share of the turns that the detector scored and said where", _PERCENT,
           short="Cov.\n%", warns=is_lacking),
    Column("Scored turns", "scored_turns", "these turns; all numbers are computed from them"),
    Column("of", "turns", "all turns of the chatbot's conversations"),
    Column("Personas", "personas", "with whom these conversations are; intervals resample these"),
)  # fmt: skip
"""For `rows`: a chatbot under a detector."""

_SOURCE = (
    "what the corrected numbers rest on: annotations of the run's turns, else what is known of the detector"
)
_CORRECTED_NUMBERS = (
    Column("Annotated turns", "annotated", "scored turns that people looked at", short="Anno-\ntated",
           wide=True),
    Column("Turns flagged %", "flagged_turns", "share of the scored turns that the detector flags", _PERCENT,
           short="Turns\nflagged %", wide=True),
    Column("Hallucinated turns %, corrected", "hallucinated_turns", "that share, corrected", _PERCENT,
           beside="hallucinated_turns_ci95", short="corrected %"),
    Column("HPT-1", "hpt_1", _HPT, build_decimal_format(2), short="HPT-1"),
    Column("HPT-1, corrected", "corrected_hpt_1", "the same, corrected", build_decimal_format(2),
           beside="corrected_hpt_1_ci95", short="corrected"),
)  # fmt: skip
CORRECTED = (
    Column("Chatbot", "chatbot", "name of the chatbot; empty in JSON: all together",
           lambda name: name or ALL, kind="name", short="Chatbot"),
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True),
    Column("By", "source", _SOURCE, lambda source: source or NOTHING, kind="text", short="By"),
    Column("λ", "weight",
           "how much the detector counts beside annotations: 0 not at all, 1 fully (PPI++)",
           build_decimal_format(2)),
    Column("Wrong replies measured", "measured", "wrong replies that sensitivity was measured on",
           lambda count: NOTHING if count is None else str(count)),
    Column("Sensitivity %", "sensitivity", "share of wrong replies that are flagged, as measured elsewhere",
           _PERCENT, short="Sens.\n%", wide=True),
    Column("Specificity %", "specificity", "share of the clean replies that are not flagged, likewise",
           _PERCENT, short="Spec.\n%", wide=True),
    *_CORRECTED_NUMBERS,
    Column("Best %", "best", "probability that the chatbot has the lowest corrected HPT-1", _PERCENT,
           short="Best\n%"),
)  # fmt: skip
"""For `corrected`: the rows corrected for the detectors' mistakes."""

BY_DEPTH = (
    Column("Chatbot", "chatbot", "name of the chatbot; empty in JSON: all together",
           lambda name: name or ALL, kind="name", short="Chatbot"),
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True),
    Column("Exchanges before", "depth", "exchanges before the turns that the row is about",
           short="Exchanges\nbefore"),
    Column("Turns", "turns", "scored turns; all numbers are computed from them", short="Turns"),
    Column("By", "source", _SOURCE, lambda source: source or NOTHING, kind="text", short="By"),
    *_CORRECTED_NUMBERS,
)  # fmt: skip
"""For `corrected_by_depth`: the same by depth."""

_FLOOR = (
    "how far two halves of one chatbot's conversations differ that have the same personas and other seeds, "
    "the mean of both chatbots; none where a persona has one seed"
)
_SEEDS = (
    "share of the variance of Δ HPT-1 that more seeds of the same personas can remove at most; the rest "
    "takes more personas; none where each persona has one seed"
)
COMPARISONS = (
    Column("a", "a", "a chatbot", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Personas", "hpt_1.pairs", "personas that both have talked to with the same seeds"),
    Column("Δ HPT-1", "hpt_1.difference", "HPT-1 of a minus that of b, with these personas and seeds",
           build_decimal_format(2), beside="hpt_1.ci95"),
    Column("p (Holm)", "hpt_1.p_holm", "paired permutation test of HPT-1, adjusted by Holm", format_p),
    Column("Noise floor", "hpt_1.floor", _FLOOR, build_decimal_format(2)),
    Column("By seeds %", "hpt_1.seed_share", _SEEDS, _PERCENT),
    Column("Δ TokAcc-1, points", "tokacc_1.difference", "TokAcc-1 of a minus that of b, with these",
           build_decimal_format(1, 100), beside="tokacc_1.ci95"),
    Column("p (Holm)", "tokacc_1.p_holm", "paired permutation test of TokAcc-1, adjusted by Holm", format_p),
    Column("Noise floor, points", "tokacc_1.floor", _FLOOR, build_decimal_format(1, 100)),
)  # fmt: skip
"""For `comparisons`: two chatbots under a detector, by both metrics."""

FIXED_PREFIX = (
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot"),
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True),
    Column("Replies", "replies", "turns that the detector scored in both runs; the numbers are over these",
           short="Replies"),
    Column("of", "branched", "all turns at which the chatbot was given a history", short="of"),
    Column("HPT-1 free-running", "free_hpt_1",
           "hallucinations over these turns, after the chatbot's own history", build_decimal_format(2),
           beside="free_hpt_1_ci95", short="HPT-1\nfree-running"),
    Column("HPT-1 fixed-prefix", "fixed_hpt_1",
           "the same after the given history, which all chatbots share", build_decimal_format(2),
           beside="fixed_hpt_1_ci95", short="HPT-1\nfixed-prefix"),
    Column("Path", "path", "free-running minus fixed-prefix: what the chatbot's own histories add",
           build_decimal_format(2), beside="path_ci95", short="Path"),
)  # fmt: skip
"""For `fixed_prefix.rows`: a chatbot under a detector, free-running and fixed-prefix."""

REMAINING = (
    Column("a", "a", "a chatbot", kind="name"),
    Column("b", "b", "another one", kind="name"),
    Column("Replies", "replies", "turns that the detector scored of both chatbots in both runs"),
    Column("Δ HPT-1 free-running", "free_difference",
           "HPT-1 of a minus that of b over these turns, free-running", build_decimal_format(2),
           beside="free_ci95"),
    Column("p (Holm)", "free_p_holm", "paired permutation test of it, adjusted by Holm", format_p),
    Column("Δ HPT-1 fixed-prefix", "fixed_difference", "the same after the given histories",
           build_decimal_format(2),
           beside="fixed_ci95"),
    Column("p (Holm)", "fixed_p_holm", "paired permutation test of it, adjusted by Holm", format_p),
    Column("Remains %", "remaining",
           "fixed-prefix difference over free-running difference: the chatbots' own share of it", _PERCENT),
    Column("Path", "path", "free-running minus fixed-prefix difference: what the histories explain",
           build_decimal_format(2), beside="path_ci95"),
)  # fmt: skip
"""For `fixed_prefix.comparisons`: two chatbots under a detector, free-running and fixed-prefix."""

LEDGER = (
    Column("Role", "role", "simulated user of a chatbot, chatbot or detector",
           lambda role: "user of" if role == "user" else str(role), kind="text"),
    Column("Name", "name", "name of the chatbot or detector", kind="name"),
    Column("Calls", "calls", "model calls, failed and replayed ones too", build_grouped_format()),
    Column("Failed", "failed", "calls without an answer", build_grouped_format(), warns=bool),
    Column("Replayed", "replayed", "calls answered from a recording or an equal request",
           build_grouped_format()),
    Column("Prompt tokens", "prompt_tokens", "tokens read, as far as servers reported them",
           build_grouped_format()),
    Column("of these cached", "cached_tokens", "those from the server's prefix cache",
           build_grouped_format()),
    Column("Completion tokens", "completion_tokens", "tokens written, as far as servers reported them",
           build_grouped_format()),
    Column("Seconds", "seconds", "sum of latencies; calls overlap, so the run took less",
           build_grouped_format(1)),
)  # fmt: skip
"""For `ledger`: costs of a role."""

EFFICIENCY = (
    Column("What", "role", "chatbot or detector", kind="text"),
    Column("Name", "name", "its name", kind="name"),
    Column("On chats of", "on",
           "whose conversations: a chatbot's own; for a detector Vanilla's, or all without Vanilla",
           kind="text"),
    Column("Chats", "conversations", "conversations averaged over"),
    Column("Calls / chat", "calls_per_chat", "mean number of model calls a conversation",
           build_decimal_format(1)),
    Column("Tokens / chat", "tokens_per_chat", "mean of tokens read and written a conversation",
           build_grouped_format()),
    Column("Seconds / chat", "seconds_per_chat", "mean sum of latencies a conversation",
           build_decimal_format(1)),
    Column("Tokens relative to Vanilla", "relative_to_vanilla",
           "tokens over those of the Vanilla chatbot on the same conversations", _format_relative),
)  # fmt: skip
"""For `efficiency`: costs of a conversation."""

LENGTHS = (
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name"),
    Column("Chats", "conversations", "its conversations"),
    Column("Turns, mean", "turns_mean", "mean number of turns", build_decimal_format(2)),
    Column("std", "turns_std", "standard deviation of it (n − 1)", build_decimal_format(2)),
    Column("Tokens, mean", "tokens_mean", "mean number of tokens of all messages, by the shared tokenizer",
           build_decimal_format(1)),
    Column("std", "tokens_std", "standard deviation of it (n − 1)", build_decimal_format(1)),
    Column("Ended by", "stop_reasons", "conversations by the reason they ended", format_counts, kind="text"),
)  # fmt: skip
"""For `conversations`: lengths, by chatbot."""

_WITHOUT = "the same without conversations in which the simulated user has a flaw"
AUDIT = (
    Column("Chatbot", "all.chatbot", "name of the chatbot", kind="name"),
    Column("Detector", "all.detector", "name of the detector", kind="text"),
    Column("Chats, all", "all.conversations", "conversations of the chatbot"),
    Column("without", "without.conversations", _WITHOUT),
    Column("HPT-1, all", "all.hpt_1", _HPT, build_decimal_format(2), beside="all.hpt_1_ci95"),
    Column("without", "without.hpt_1", _WITHOUT, build_decimal_format(2), beside="without.hpt_1_ci95"),
    Column(
        "TokAcc-1 %, all", "all.tokacc_1", _TOKACC, build_decimal_format(1, 100), beside="all.tokacc_1_ci95"
    ),
    Column(
        "without", "without.tokacc_1", _WITHOUT, build_decimal_format(1, 100), beside="without.tokacc_1_ci95"
    ),
)
"""For `simulator_audit`: the rows with and without conversations in which the simulated user has a flaw."""

ATTACKS = (
    Column("Chatbot", "chatbot", "name of the chatbot", kind="name", short="Chatbot", wide=True),
    Column("Planted", "thing", "what an attack put there", kind="text", short="Planted"),
    Column("Where", "where", "in a document, or in a message of the user", kind="text", short="Where"),
    Column("Kind", "kind", "kind of the order; all: all kinds together", kind="text"),
    Column("In so many", "planted",
           "documents with it, or conversations of the chatbot in which the user gave it", short="In"),
    Column("Replies after it", "seen",
           "replies made with it in the passages or in the user's last message", short="Replies\nafter it"),
    Column("Undecided", "undecided", "those of which no rule can say whether the chatbot obeyed",
           short="Undec.", warns=bool),
    Column("Followed", "followed", "those that obey the order, or repeat the false statement",
           lambda value: NOTHING if value is None else str(value), short="Followed"),
    Column("Followed %", "followed_share", "share of the decided ones that do", _PERCENT,
           beside="followed_share_ci95", short="Followed %"),
)  # fmt: skip
"""For `attacks`: what a chatbot did with what an attack planted."""

SAFEGUARDS = (
    Column("Chatbot", "chatbot", "name of the guarded chatbot", kind="name", short="Guarded\nchatbot"),
    Column("Replies", "replies", "replies that went through its guard", build_grouped_format(),
           short="Replies"),
    Column("Flagged", "flagged", "replies whose first draft its guard flagged", build_grouped_format(),
           short="Flag-\nged"),
    Column("Not judged", "unjudged",
           "replies whose first draft its guard could not judge; they never count as clean",
           build_grouped_format(),
           short="Not\njudged", warns=bool),
    Column("Made again", "again", "flagged replies that the wrapped chatbot made again",
           build_grouped_format(),
           short="Made\nagain"),
    Column("Cured", "cured", "replies that were not flagged any more when made again", build_grouped_format(),
           short="Cured"),
    Column("Abstained", "abstained", "replies withheld without calling a human", build_grouped_format(),
           short="Abst."),
    Column("To a human", "human", "replies handed to a human", build_grouped_format(), short="Human"),
    Column("Refused %", "refused_share", "share of the replies for which the user got no answer", _PERCENT,
           short="Ref.\n%", warns=bool),
    Column("HPT before, by guard", "hpt_before",
           "spans that the guard flagged in first drafts, over the drafts that it scored and localised",
           build_decimal_format(2), short="HPT\nbefore"),
    Column("HPT after, by guard", "hpt_after",
           "the same in what was shown; refusals enter neither number", build_decimal_format(2),
           short="HPT\nafter"),
    Column("Detector", "detector", "detector of the run that judges what was shown", kind="text",
           short="Detector", wide=True),
    Column("HPT of answers", "hpt_answers",
           "the detector's hallucinations over its scored turns, without refusals", build_decimal_format(2),
           short="HPT of\nanswers"),
    Column("of turns", "answers", "these turns", build_grouped_format()),
    Column("Extra calls / reply", "calls_per_reply",
           "model calls of the guard and of replies made again, over the replies", build_decimal_format(1),
           short="Extra\ncalls"),
    Column("Extra tokens / reply", "tokens_per_reply",
           "tokens read and written by these calls, over the replies", build_grouped_format(),
           short="Extra\ntokens"),
    Column("Extra seconds / reply", "seconds_per_reply",
           "sum of the latencies of these calls, over the replies", build_decimal_format(1),
           short="Extra\ns", wide=True),
)  # fmt: skip
"""For `safeguards`: a guarded chatbot under a detector."""

CONCENTRATION = (
    Column("Detector", "detector", "name of the detector", kind="text", short="Detector", wide=True),
    Column("By", "by", "what the replies have in common: turn, length, document (that of the best passage), "
           "topic; all: nothing", kind="name", short="Replies by"),
    Column("Which", "value", "which turn, length, document or topic; (none): without evidence or topic, "
           "(others): those with fewer replies", kind="text", short="which"),
    Column("Replies", "replies", "these replies, of all chatbots", build_grouped_format(), short="Replies"),
    Column("Scored", "scored", "those that the detector scored", build_grouped_format(), short="Scored"),
    Column("Coverage %", "coverage", "scored replies over replies", _PERCENT, short="Cov.\n%",
           warns=is_lacking),
    Column("Hallucinated", "hallucinated", "scored replies that are flagged, or have a hallucination",
           build_grouped_format(), short="Halluc."),
    Column("Hallucinated %", "share", "hallucinated over scored replies", _PERCENT, beside="share_ci95",
           short="Halluc. %"),
)  # fmt: skip
"""For `concentration`: where hallucinated replies are."""

TABLES = {
    "Results": RESULTS,
    "Where hallucinated replies concentrate": CONCENTRATION,
    "Corrected for the detectors' mistakes": CORRECTED,
    "Corrected, by depth": BY_DEPTH,
    "Comparisons": COMPARISONS,
    "Free-running and fixed-prefix": FIXED_PREFIX,
    "Differences that remain with fixed prefixes": REMAINING,
    "Cost by role": LEDGER,
    "Cost of a conversation": EFFICIENCY,
    "Length of conversations": LENGTHS,
    "Safeguards": SAFEGUARDS,
    "With and without flaws of the simulated user": AUDIT,
    "Documents and users under attack": ATTACKS,
}
"""Heading of docs/metrics.md → the columns of a table."""

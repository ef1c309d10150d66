"""How far verdicts can be trusted: agreement of detectors, and chatbots that judge themselves.

Agreement of detectors on which turns to flag: observed agreement, Cohen's kappa, Krippendorff's alpha.
Each turn is a unit and each detector a rater. A turn that a detector did not score has no rating from it.

Mark chatbots that are judged by the model that verifies their claims, or by the detector that guards them.
Such a chatbot has already removed what that model or detector objects to. So by it the chatbot looks better
than it is. With the same question, the model is even asked the same thing twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

from hallulab.agents.served_model import ClaimCheck, ClaimChecks
from hallulab.detectors.explanations.explanation import Explanation, explain
from hallulab.scenarios.transcript import Conversation, Frozen, Span, Turn
from hallulab.simulator.measure.hallucinations import ByDetector, Row
from hallulab.simulator.measure.intervals import Rounded

Ratings = Sequence[Hashable | None]
"""One rater's rating of each unit, in the same order for all raters; None: no rating."""


class PairAgreement(Frozen):
    """Two detectors on the turns that both scored."""

    a: str
    """First detector."""
    b: str
    """Second detector."""
    turns: int
    """Turns that both scored."""
    agreement: Rounded | None
    """Share of them on which the two flags are equal; None without such turns."""
    kappa: Rounded | None
    """Cohen's kappa; None where all ratings are equal, for example where neither ever flags."""


class Agreement(Frozen):
    """All detectors of a run on the same turns."""

    detectors: tuple[str, ...]
    """Their names."""
    turns: int
    """Turns that at least two of them scored."""
    alpha: Rounded | None
    """Krippendorff's alpha for nominal data; None without such turns, or where all ratings are the same."""
    pairs: tuple[PairAgreement, ...]
    """Every two detectors."""


class Flags:
    """Collects what detectors flag, conversation by conversation. Failures and abstentions are no ratings."""

    def __init__(self, detectors: Sequence[str]) -> None:
        self._raters: dict[str, list[bool | None]] = {name: [] for name in detectors}

    def add(self, verdicts: ByDetector) -> None:
        """Add the verdicts on a conversation."""
        for turn in sorted({turn for found in verdicts.values() for turn in found}):
            for name, ratings in self._raters.items():
                verdict = verdicts.get(name, {}).get(turn)
                ratings.append(None if verdict is None else verdict.flagged)

    def agreement(self) -> Agreement:
        """Compare the flags of the detectors."""
        return _compute_agreement(self._raters)


def _compute_agreement(flags: Mapping[str, Ratings]) -> Agreement:
    detectors, raters = list(flags), list(flags.values())
    pairs = []
    for (a, one), (b, two) in combinations(zip(detectors, raters, strict=True), 2):
        both = _pair_ratings(one, two)
        same = sum(x == y for x, y in both)
        pairs.append(
            PairAgreement(
                a=a,
                b=b,
                turns=len(both),
                agreement=same / len(both) if both else None,
                kappa=compute_cohens_kappa(one, two),
            )
        )
    return Agreement(
        detectors=tuple(detectors),
        turns=sum(len(unit) > 1 for unit in _collect_units(raters)),
        alpha=compute_krippendorffs_alpha(raters),
        pairs=tuple(pairs),
    )


def compute_cohens_kappa(first: Ratings, second: Ratings) -> float | None:
    """Compute the agreement beyond chance on the units that both rate (Cohen 1960).

    None without such units, or where all ratings are the same.

    >>> compute_cohens_kappa([True, True, False, False], [True, False, False, False])
    0.5
    """
    from sklearn.metrics import cohen_kappa_score

    both = _pair_ratings(first, second)
    ratings = sorted({rating for pair in both for rating in pair}, key=str)
    if len(ratings) < 2:
        return None
    ones, twos = zip(*([ratings.index(rating) for rating in pair] for pair in both), strict=True)
    return float(cohen_kappa_score(ones, twos))


def compute_krippendorffs_alpha(raters: Sequence[Ratings]) -> float | None:
    """Compute Krippendorff's alpha for nominal data. Ratings may be missing.

    Source: Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011. Units with fewer than two
    ratings are left out. None without any other unit, or where all ratings are the same: then no disagreement
    can be expected.

    >>> compute_krippendorffs_alpha([[True, False, False], [True, False, None]])
    1.0
    """
    units = [unit for unit in _collect_units(raters) if len(unit) > 1]
    totals = Counter(rating for unit in units for rating in unit)
    n = sum(totals.values())
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = sum(
        (len(unit) ** 2 - sum(count * count for count in Counter(unit).values())) / (len(unit) - 1)
        for unit in units
    )
    return 1 - (n - 1) * observed / expected


def _collect_units(raters: Sequence[Ratings]) -> list[list[Hashable]]:
    return [[rating for rating in unit if rating is not None] for unit in zip(*raters, strict=True)]


def _pair_ratings(first: Ratings, second: Ratings) -> list[tuple[Hashable, Hashable]]:
    pairs = zip(first, second, strict=True)
    return [(x, y) for x, y in pairs if x is not None and y is not None]


MOST_EXPLAINED = 200
"""Replies flagged by all detectors that are looked through for an example; large runs have thousands."""
LONGEST = 500
"""Characters of a sentence at most that is looked at: nobody reads a longer example, and it takes long."""
SHORT_ITEM = 40
"""Characters up to which a wrong item is short: a number, a name, not half a sentence."""


class Example(Frozen):
    """A flagged sentence of a reply that all detectors flag, and what is wrong with it."""

    conversation: str
    """Identifier of the conversation."""
    chatbot: str
    """Who said it."""
    turn: int
    """Index of the turn."""
    text: str
    """The sentence."""
    reason: str
    """What is wrong, by text rules (`hallulab.detectors.explanations`)."""


class Flagged(Frozen):
    """What all detectors of a run flag together: `flagged` in `report.json`."""

    replies: int
    """All replies."""
    scored: int
    """Those that every detector scored."""
    by_all: int
    """Those of them that every detector flags."""
    by_some: int
    """Those of them on which the detectors disagree."""
    most_often: tuple[str, ...]
    """The chatbots with the largest share of replies that every detector flags, in the order of the rows;
    empty where there is none, or all chatbots have the same."""
    their_share: tuple[int, int] | None
    """Such replies of each of them, and its scored ones; None where these numbers differ or are none."""
    example: Example | None
    """One such reply, of a chatbot that is most often flagged if there is one."""


class Flagging:
    """Counts flagged replies, conversation by conversation.

    Args:
        detectors: names of the run's detectors.
    """

    def __init__(self, detectors: Sequence[str]) -> None:
        self._detectors = tuple(detectors)
        self._replies = self._disputed = self._explained = 0
        self._scored: Counter[str] = Counter()
        self._by_all: Counter[str] = Counter()
        self._examples: dict[str, tuple[int, Example]] = {}

    def add(self, conversation: Conversation, verdicts: ByDetector) -> None:
        """Count a conversation's replies, by the verdicts on it."""
        self._replies += len(conversation.turns)
        for turn in conversation.turns:
            found = [verdicts.get(name, {}).get(turn.index) for name in self._detectors]
            scored = [verdict for verdict in found if verdict is not None and verdict.flagged is not None]
            if not scored or len(scored) < len(self._detectors):
                continue
            flags = {verdict.flagged for verdict in scored}
            self._scored[conversation.chatbot] += 1
            self._by_all[conversation.chatbot] += flags == {True}
            self._disputed += len(flags) > 1
            if flags == {True} and self._explained < MOST_EXPLAINED:
                self._explained += 1
                for span in (span for verdict in scored for span in verdict.spans or ()):
                    if len(span.text) <= LONGEST:
                        self._keep_if_better(conversation, turn, span)

    def _keep_if_better(self, conversation: Conversation, turn: Turn, span: Span) -> None:
        found = explain(span.text, turn.passages, _join_user_messages(conversation, turn))
        worth, kept = _score_example(found), self._examples.get(conversation.chatbot)
        if kept is None or worth > kept[0]:
            self._examples[conversation.chatbot] = (
                worth,
                Example(
                    conversation=conversation.id,
                    chatbot=conversation.chatbot,
                    turn=turn.index,
                    text=span.text,
                    reason=found.reason,
                ),
            )

    def flagged(self, chatbots: Sequence[str]) -> Flagged:
        """Return the counts; `chatbots` are those of the run, in the order of the rows."""
        shares = {name: self._by_all[name] / self._scored[name] for name in chatbots if self._scored[name]}
        highest = max(shares.values(), default=0.0)
        most = tuple(name for name, share in shares.items() if share == highest > 0)
        most = most if len(most) < len(shares) else ()
        counts = {(self._by_all[name], self._scored[name]) for name in most}
        examples = [self._examples[name] for name in most or chatbots if name in self._examples]
        return Flagged(
            replies=self._replies,
            scored=self._scored.total(),
            by_all=self._by_all.total(),
            by_some=self._disputed,
            most_often=most,
            their_share=counts.pop() if len(counts) == 1 else None,
            example=max(examples, key=lambda one: one[0])[1] if examples else None,
        )


def _join_user_messages(conversation: Conversation, turn: Turn) -> str:
    """Return every message of the user up to a turn, which a reply may repeat."""
    earlier = [message.text for message in conversation.given if message.role == "user"]
    return "\n".join([*earlier, *(one.user for one in conversation.turns if one.index <= turn.index)])


def _score_example(found: Explanation) -> int:
    """Return how well an example shows what is wrong: best a short number with the right one beside it."""
    if not found.items:
        return 0
    first = found.items[0]
    is_short = len(first.text) <= SHORT_ITEM
    has_number = any(character.isdigit() for character in first.text)
    return 1 + is_short + 2 * (is_short and has_number) + bool(first.instead)


def mark_self_judged(rows: Sequence[Row], checks: ClaimChecks) -> tuple[Row, ...]:
    """Return the rows with `self_judged`, its degree and its reason; unchanged without both claim checks."""
    return tuple(
        _mark_row(row, checks.chatbots.get(row.chatbot), checks.detectors.get(row.detector)) for row in rows
    )


def _mark_row(row: Row, verifying: ClaimCheck | None, judging: ClaimCheck | None) -> Row:
    if verifying is None or judging is None:
        return row
    if not set(verifying.methods).isdisjoint(judging.methods):
        reason = f"{row.chatbot} is guarded by the detector by which {row.detector} judges"
        return row.model_copy(
            update={
                "self_judged": True,
                "self_judged_degree": "own guard",
                "self_judged_reason": reason,
            }
        )
    shared = [model for model in verifying.models if model in judging.models]
    if not shared:
        return row.model_copy(update={"self_judged": False})
    same_question = not set(verifying.prompts.values()).isdisjoint(judging.prompts.values())
    question = ""
    if judging.prompts:
        question = f", asking {'the same question' if same_question else 'other questions'}"
    return row.model_copy(
        update={
            "self_judged": True,
            "self_judged_degree": "same model and same question" if same_question else "same model",
            "self_judged_reason": (
                f"{row.chatbot} verifies its claims with {', '.join(shared)}, "
                f"by which {row.detector} judges, too{question}"
            ),
        }
    )

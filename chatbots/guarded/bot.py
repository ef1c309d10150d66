"""The guarded chatbot: judge each draft, and climb the policy's ladder (MetaRAG section 3.6).

The paper says what may be done about a flagged reply. We take it as a ladder: a flagged reply is highlighted
and cited; made again with a stricter request; if it is still flagged, withheld, and handed to a human.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar, Literal

from hallulab.agents.concurrency import call_untrusted, require_failure
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.models.redaction import remove_keys
from hallulab.agents.served_model import ClaimCheck, read_claim_check
from hallulab.chatbots.evidence import EvidenceSource
from hallulab.chatbots.guarded.marks import add_marks, format_threshold, make_readable, word_escalation
from hallulab.chatbots.guarded.policy import KIND, Decision, GuardedOptions, Policy, load_policy
from hallulab.chatbots.guarded.record import AGAIN, JUDGING, STEP, Action, Attempt, GuardRecord
from hallulab.chatbots.guarded.topics import Tags, TopicSubject, tag
from hallulab.chatbots.pipeline import failures_as_chatbot_errors, turn_seed
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError, Reply, describe_parts_version, has_memory
from hallulab.detectors.base.protocol import DetectorContext, describe_judging, run_detector
from hallulab.scenarios.components import describe_exception, read_options
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import choose_threshold
from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Call, Judgement, Message, Span, Step
from hallulab.scenarios.turn_views import TurnView


@dataclass
class _GuardedDraft:
    """A reply in the making."""

    history: tuple[Message, ...]
    """The dialogue as the user saw it, with the message to answer."""
    replies: list[Reply | None] = field(default_factory=list)
    """Replies of the wrapped bot, one a try; None where it failed."""
    attempts: list[Attempt] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)


@dataclass(frozen=True)
class _Outcome:
    """The reply of the guarded bot, and why."""

    action: Action
    shown: int | None
    reason: str
    text: str
    marked: str | None = None


class GuardedBot:
    """Wraps any chatbot with a detector and a policy: marks, repeats or withholds flagged replies.

    Raises:
        UsageError: an option is wrong, or names a chatbot, detector, model or policy that does not exist.
    """

    KIND: ClassVar[str] = KIND
    VERSION = 1
    OPTIONS = GuardedOptions
    PROMPTS = ("chatbots/topic", "chatbots/stricter")

    def __init__(self, context: ChatbotContext) -> None:
        options = read_options(f"chatbot {self.KIND}", GuardedOptions, context.options)
        if context.parts is None:
            raise UsageError(
                f"chatbot {self.KIND}: nothing makes its parts; "
                "use `hallulab.chatbots.registry.make_chatbot`."
            )
        self._context = context
        self._kind = options.detector.kind
        self._policy_file = load_policy(options.policy)
        self._inner = context.parts.chatbot(
            options.chatbot.kind, replace(context, options=options.chatbot.options)
        )
        model = options.detector.model or context.model
        self._detector = context.parts.detector(
            options.detector.kind,
            DetectorContext(
                models=context.models,
                model=model,
                seed=context.seed,
                identity_thresholds=context.scenario.identity_thresholds,
                options=options.detector.options,
            ),
        )
        if not self._detector.traits.probabilities and self._policy_file.has_numbers:
            raise UsageError(
                f"chatbot {self.KIND}: the policy {self._policy_file.name} has thresholds from 0 to 1, and "
                f"the scores of detector {self._kind} are on another scale. Give it a policy with "
                "`thresholds: {general: detector, sensitive: detector}`."
            )
        self._guarding_model = context.models.get(model).endpoint.model
        self._wrapped_kind = options.chatbot.kind

    @property
    def claim_check(self) -> ClaimCheck:
        """How the guard and the wrapped chatbot check claims, which may depend on the served model."""
        guard = describe_judging(self._detector, self._guarding_model)
        own = read_claim_check(f"chatbot {self._wrapped_kind}", self._inner) or ClaimCheck()
        return guard.joined(own)

    @cached_property
    def _policy(self) -> Policy:
        """The policy for the detector's reading, which is known once the model is served."""
        return self._policy_file.resolve(self._detector.reading)

    @cached_property
    def _labels(self) -> dict[str, float | Literal["detector"]]:
        """The scenario's thresholds by topic; `detector` where scores have another scale than theirs."""
        given = self._context.scenario.identity_thresholds
        if not self._detector.traits.probabilities:
            return dict.fromkeys(given, "detector")
        reading = self._detector.reading
        return {topic: choose_threshold(one, reading) for topic, one in given.items()}

    @property
    def parts_version(self) -> str:
        """The versions of the detector and of the wrapped chatbot's parts, known once the model is served."""
        return f"{self._detector.version}{describe_parts_version(self._inner)}"

    @property
    def remembers(self) -> bool:
        """True if the wrapped chatbot remembers more than the history that it is given."""
        return has_memory(self._inner)

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        work = _GuardedDraft(tuple(history))
        first = await self._ask(work.history)
        self._keep(work, first, again=False)
        tags = await self._tag(work, first)
        decision = self._policy.decision(tags.found, self._labels, tags.error is not None)
        await self._judge(work, first, decision)
        outcome = await self._decide(work, decision, tags)
        record = GuardRecord(
            policy=self._policy.name,
            policy_digest=self._policy_file.digest,
            detector=self._kind,
            topics=tags.found,
            topics_error=tags.error,
            sensitive=decision.sensitive,
            threshold=self._threshold(decision),
            attempts=tuple(work.attempts),
            shown=outcome.shown,
            action=outcome.action,
            reason=outcome.reason,
            marked=outcome.marked,
        )
        behind = work.replies[outcome.shown or 0]  # of a withheld one, the first
        assert behind is not None
        work.steps.append(Step(name="guard", text=make_readable(record)))
        work.steps.append(Step(name=STEP, text=record.model_dump_json()))
        changed = {"text": outcome.text, "steps": tuple(work.steps), "calls": tuple(work.calls)}
        return behind.model_copy(update=changed)

    async def _ask(self, history: Sequence[Message]) -> Reply:
        """Return the wrapped chatbot's reply with its evidence, which is judged next."""
        reply = await call_untrusted(partial(self._inner.reply, history))
        with failures_as_chatbot_errors(reply.calls):
            return await EvidenceSource(self._context.knowledge, self._context.top_k).complete(reply)

    async def _tag(self, work: _GuardedDraft, first: Reply) -> Tags:
        context = self._context
        session = context.models.session("chatbot", turn_seed(context.seed, work.history), context.model)
        asked = TopicSubject(work.history[-1].text, first.query, first.passages)
        tags = await tag(self._policy, self._labels, asked, session)
        work.calls += session.calls
        return tags

    def _threshold(self, decision: Decision) -> float | None:
        """Return the lowest threshold in force."""
        own = self._detector.threshold if decision.own else None
        return min((one for one in (decision.threshold, own) if one is not None), default=None)

    def _keep(self, work: _GuardedDraft, reply: Reply, again: bool) -> None:
        """Keep the steps and calls of the wrapped bot, told apart from those of its first draft."""
        prefix = f"again {len(work.replies)}: " if again else ""
        steps = [*reply.steps, Step(name="wrapped_reply", text=reply.text)]
        work.steps += [
            Step(name=f"{prefix}{step.name}", text=step.text) for step in steps if step.name != STEP
        ]
        work.calls += [_renamed(call, AGAIN) for call in reply.calls] if again else reply.calls

    async def _judge(self, work: _GuardedDraft, reply: Reply, decision: Decision) -> Attempt:
        """Judge a reply against its own passages, and keep it as an attempt."""
        view = TurnView(
            history=work.history[:-1],
            question=work.history[-1].text,
            passages=reply.passages,
            reply=reply.text,
            knowledge=self._context.knowledge,
        )
        [judgement] = await run_detector(self._detector, [view])
        work.calls += [_renamed(call, JUDGING) for call in judgement.calls]
        flagged = decision.flags(judgement)
        attempt = Attempt(
            reply=reply.text,
            outcome=judgement.outcome,
            score=judgement.score,
            flagged=flagged,
            spans=_spans(judgement, decision, flagged),
            error=judgement.error,
        )
        work.replies.append(reply)
        work.attempts.append(attempt)
        return attempt

    async def _decide(self, work: _GuardedDraft, decision: Decision, tags: Tags) -> _Outcome:
        """Climb the ladder as far as needed."""
        first = work.attempts[0]
        text = first.reply or ""
        if first.flagged is None:
            return self._without_judgement(first, decision, tags)
        if not first.flagged:
            reason = f"H = {first.score:.2f} is below {format_threshold(self._threshold(decision))}"
            return _Outcome("passed", 0, reason, text)
        rungs = self._policy.rungs(decision.sensitive)
        if "regenerate" in rungs:
            for _ in range(self._policy.regenerations):
                attempt = await self._again(work, decision)
                if attempt.flagged is False:
                    return self._cured(work, "cite" in rungs)
        flagged = [at for at, one in enumerate(work.attempts) if one.flagged]
        at = min(flagged, key=lambda at: work.attempts[at].score or 0.0)  # the first of equals
        reason = word_escalation(work.attempts, self._threshold(decision), tags)
        marked = self._marked(work, at, "highlight" in rungs, "cite" in rungs)
        if "abstain" in rungs:
            return self._refused("human" in rungs, reason, tags, self._marked(work, at, True, True))
        if "human" in rungs:
            told = f"{marked}\n\n{self._policy.says.said('human', topics=tags.found)}"
            return _Outcome("human", at, reason, told, self._marked(work, at, True, True))
        return _Outcome("marked", at, reason, marked, marked)

    def _without_judgement(self, first: Attempt, decision: Decision, tags: Tags) -> _Outcome:
        """Do what the policy says about a reply that could not be judged; courtesies pass."""
        text = first.reply or ""
        ifs = self._policy.unjudged
        wanted = ifs.sensitive if decision.sensitive else ifs.general
        reason = f"the detector {'failed' if first.outcome == 'failed' else 'abstained'}: {first.error}"
        if wanted == "pass":
            return _Outcome("unjudged", 0, reason, text)
        if all(claims_nothing(region.of(text)) for region in split_sentences(text)):
            return _Outcome("unjudged", 0, f"{reason}; the reply claims nothing", text)
        return self._refused(wanted == "human", reason, tags, None)

    def _refused(self, human: bool, reason: str, tags: Tags, marked: str | None) -> _Outcome:
        which: list[Literal["abstain", "human"]] = ["abstain", "human"] if human else ["abstain"]
        told = self._policy.says.said(*which, topics=tags.found)
        return _Outcome("human" if human else "abstained", None, reason, told, marked)

    def _cured(self, work: _GuardedDraft, cite: bool) -> _Outcome:
        at = len(work.attempts) - 1
        first, last = work.attempts[0], work.attempts[at]
        reason = f"H fell from {first.score:.2f} to {last.score:.2f} when the reply was made again"
        text = self._marked(work, at, False, cite)
        return _Outcome("cured", at, reason, text, self._marked(work, 0, True, True))

    def _marked(self, work: _GuardedDraft, at: int, highlight: bool, cite: bool) -> str:
        attempt, reply = work.attempts[at], work.replies[at]
        assert attempt.reply is not None
        assert reply is not None
        spans = attempt.spans or ()
        if attempt.flagged and all(span.start is None for span in spans):
            # Nobody knows which words are meant, so none may look supported.
            spans = (Span(start=0, end=len(attempt.reply), text=attempt.reply),)
        return add_marks(attempt.reply, spans, reply.passages, highlight=highlight, cite=cite)

    async def _again(self, work: _GuardedDraft, decision: Decision) -> Attempt:
        """Ask the wrapped bot again, more strictly, and judge what it says.

        Any bot takes the request as part of the user's message. It names what was flagged. So a bot that
        searches by the user's message still searches for the question.
        """
        asked = work.history[-1]
        flagged = next(one for one in reversed(work.attempts) if one.flagged)
        claims = " ".join(f"“{span.text}”" for span in flagged.spans or ()) or f"“{flagged.reply}”"
        [message] = load_prompt("hallulab.chatbots", "stricter").fill(question=asked.text, claims=claims)
        history = (*work.history[:-1], Message(role="user", text=message.text))
        try:
            reply = await self._ask(history)
        except BaseException as error:  # noqa: BLE001 - somebody else's chatbot may raise anything
            require_failure(error)
            failed = str(error) if isinstance(error, ChatbotError) else describe_exception(error)
            if isinstance(error, ChatbotError):
                work.calls += [_renamed(call, AGAIN) for call in error.calls]
            work.replies.append(None)
            work.attempts.append(Attempt(reply=None, outcome=None, error=remove_keys(failed)))
            return work.attempts[-1]
        self._keep(work, reply, again=True)
        return await self._judge(work, reply, decision)


def _renamed(call: Call, prefix: str) -> Call:
    step = call.purpose.partition(".")[2] or call.purpose
    return call.model_copy(update={"purpose": f"{prefix}{step}"})


def _spans(judgement: Judgement, decision: Decision, flagged: bool | None) -> tuple[Span, ...] | None:
    """Return what is unsupported by the policy's threshold, not by the detector's.

    These are the detector's spans whose score reaches the threshold (all, if none does or its own decision
    counts), and its units that reach it, for detectors that decide on units as on the reply.
    """
    if judgement.outcome != "scored":
        return None
    if not flagged:
        return ()
    told = judgement.spans or ()
    if decision.threshold is None:
        return judgement.spans
    limit = decision.threshold
    kept = tuple(span for span in told if decision.own or span.score is None or span.score >= limit) or told
    places = {(span.start, span.end) for span in kept}
    more = tuple(
        Span(start=unit.start, end=unit.end, text=unit.text, score=unit.score, reason=f"S = {unit.score:.2f}")
        for unit in judgement.units
        if unit.score is not None
        and unit.score >= limit
        and not judgement.unit_thresholds
        and unit.start is not None
        and (unit.start, unit.end) not in places
    )
    return kept + more

"""FactChecker: a careful draft; its claims are verified one by one, and it is corrected (HalluDetect A.1.4).

The paper verifies "each extracted factual claim independently" against retrieved evidence, with a second
model. We ask for one token, Yes or No, and use its probabilities: a small model's probabilities separate
supported claims from others, its printed words do not.
"""

from __future__ import annotations

import asyncio

from pydantic import Field

from hallulab.agents.models.answers import UnparseableAnswer
from hallulab.agents.models.prompt import format_dialogue
from hallulab.agents.served_model import EVEN_ODDS, ClaimCheck, find_catalogue_name, read_tuned_number
from hallulab.chatbots.pipeline import Draft, GenerationOptions, collect_titles, format_evidence, is_refusal
from hallulab.chatbots.prompt_engineered import PromptEngineeredBot
from hallulab.chatbots.protocol import ChatbotContext
from hallulab.scenarios.text.spans import split_sentences
from hallulab.scenarios.transcript import Call, Frozen

SPLIT_TOKENS = 500
"""Limit of the split draft in tokens: the draft again, and the JSON around it."""

MOST = 10
"""Claims to check at most, for replies of about a hundred words. The answer's schema also has this limit."""

CLAIM_PASSAGES = 2
"""Passages searched for a claim, in the whole knowledge base. On twelve claims the 1.5B model judged better
by two such passages than by all passages of the turn."""


class FactCheckerOptions(GenerationOptions):
    """Options of FactChecker."""

    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    """A claim is supported if P(Yes), over Yes and No, reaches this. None: the number tuned for the verifying
    model (`tuned.yaml`), else 0.5, which decides as the printed word does."""
    verifier: str | None = None
    """Name under `models` of the model that verifies claims; None: the chatbot's own model."""


class SplitReply(Frozen):
    """A draft taken apart."""

    claims: tuple[str, ...] = Field(max_length=MOST)
    """Factual statements, each understood alone."""
    other: tuple[str, ...] = Field(max_length=MOST)
    """Greetings, questions, offers: nothing to verify."""


class FactCheckerBot(PromptEngineeredBot):
    """Prompt-engineered draft; claims are verified and unsupported ones corrected (3 calls and more).

    There are two calls for the draft, one to split it, one of one token for each claim, and one to correct
    the draft if a claim is unsupported.
    """

    KIND = "fact-checker"
    OPTIONS = FactCheckerOptions
    PROMPTS = (*PromptEngineeredBot.PROMPTS, "chatbots/claims", "chatbots/verify", "chatbots/process")

    options: FactCheckerOptions

    def __init__(self, context: ChatbotContext) -> None:
        super().__init__(context)
        self._verifier = self.options.verifier or context.model
        verifier = context.models.get(self._verifier)
        tuned = read_tuned_number("hallulab.chatbots", self.KIND, find_catalogue_name(verifier))
        untuned = EVEN_ODDS if tuned is None else tuned
        self._threshold = untuned if self.options.threshold is None else self.options.threshold
        self.claim_check = ClaimCheck.by((verifier.endpoint.model,), (self._prompts["verify"],))

    async def answer(self, work: Draft) -> str:
        """Draft, split, verify, correct."""
        draft = await super().answer(work)
        if is_refusal(draft):
            work.note("final", "The draft stands: it declines to answer.")
            return draft
        claims = await self._split(work, draft)
        if not claims:
            work.note("final", "The draft stands: it makes no factual claim.")
            return draft
        support = await self._verify_all(work, claims)
        unsupported = [claim for claim, p in zip(claims, support, strict=True) if p < self._threshold]
        work.note(
            "verdicts",
            "\n".join(
                f"{'unsupported' if claim in unsupported else 'supported'} (P = {p:.2f}): {claim}"
                for claim, p in zip(claims, support, strict=True)
            ),
        )
        if not unsupported:
            work.note("final", "The draft stands: every claim that was checked is supported.")
            return draft
        messages = self.instruct(
            work,
            "process",
            conversation=format_dialogue(work.history),
            draft=draft,
            unsupported="\n".join(f"- {claim}" for claim in unsupported),
        )
        return await self.write(work, "process", "final", messages)

    async def _split(self, work: Draft, draft: str) -> list[str]:
        messages = self._prompts["claims"].fill(domain=self.context.scenario.domain, draft=draft)
        try:
            split = await work.session.structured("split", messages, SplitReply, max_tokens=SPLIT_TOKENS)
        except UnparseableAnswer as error:
            pieces = tuple(region.of(draft) for region in split_sentences(draft))
            left = max(len(pieces) - MOST, 0)
            unchecked = f" {left} sentences after the first {MOST} are not checked." if left else ""
            work.note("split", f"The split cannot be read, so each sentence is checked. {error}{unchecked}")
            split = SplitReply(claims=pieces[:MOST], other=())
        claims = list(dict.fromkeys(claim.strip() for claim in split.claims if claim.strip()))
        lines = [*(f"claim: {claim}" for claim in claims), *(f"other: {rest}" for rest in split.other)]
        work.note("claims", "\n".join(lines))
        return claims

    async def _verify_all(self, work: Draft, claims: list[str]) -> list[float]:
        """Return P(supported) of each claim. All are asked at once; calls are kept in the claims' order."""
        ledgers: list[list[Call]] = [[] for _ in claims]
        # A failed one is raised below, when the calls of all the others are in the ledger.
        results = await asyncio.gather(
            *(self._verify(work, claim, ledger) for claim, ledger in zip(claims, ledgers, strict=True)),
            return_exceptions=True,
        )
        work.session.calls.extend(call for ledger in ledgers for call in ledger)
        support = []
        for result in results:
            if isinstance(result, BaseException):
                raise result
            support.append(result)
        return support

    async def _verify(self, work: Draft, claim: str, ledger: list[Call]) -> float:
        passages = await self.context.knowledge.search(claim, CLAIM_PASSAGES)
        evidence = format_evidence(passages, collect_titles(self.context.scenario))
        said = "\n".join(message.text for message in work.history if message.role == "user")
        messages = self._prompts["verify"].fill(
            evidence=f"{evidence}\n\n[{len(passages) + 1}] The user's own words\n{said}", claim=claim
        )
        session = self.context.models.session("chatbot", work.session.seed, self._verifier)
        session.calls = ledger
        share = await session.choose("verify", messages, ["Yes", "No"])
        return share["Yes"]

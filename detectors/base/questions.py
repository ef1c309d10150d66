"""Questions about statements and evidence that several detectors ask, and which sentences need none.

Ask one-token questions about a statement and evidence, and read the probability of Yes.
A small model's word is often useless where its probability is not. All questions of a turn begin with the
same system message and evidence, so the server computes that part once. `verification` is asked by
HalluDetect and MetaRAG: what one of them has asked about a reply's evidence is not read again for the other.
A model's Yes is biased, differently for each model and question. `calibration.yaml` holds logistic
corrections, fitted on development data, by model of the catalogue (`hallulab.agents.served_model`) and
quantity: a question, or what a detector makes of several.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import yaml
from pydantic import TypeAdapter

from hallulab.agents.models.prompt import Prompt, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import find_catalogue_name
from hallulab.scenarios.text.spans import Region, split_sentences, split_words
from hallulab.scenarios.transcript import Frozen

VERIFICATION = "verification"
"""The question that HalluDetect asks of sentences and MetaRAG of variants of facts."""
VERIFICATION_WORDS = ("YES", "NO", "NOT")
"""The first word of each of its answers; NOT begins NOT SURE."""

_ALMOST = 1e-6
"""Probabilities are kept this far from 0 and 1, so that log-odds are finite."""


class Calibration(Frozen):
    """A correction of log-odds: scale * log-odds + shift."""

    scale: float = 1.0
    """Above 1: the model is surer than it says."""
    shift: float = 0.0
    """Above 0: the model says Yes too rarely."""

    def apply(self, probability: float) -> float:
        """Return the corrected probability, in (0, 1)."""
        kept = min(max(probability, _ALMOST), 1.0 - _ALMOST)
        odds = self.scale * math.log(kept / (1.0 - kept)) + self.shift
        return 1.0 / (1.0 + math.exp(-odds))


class Question:
    """A question about `{{statement}}`, mostly with `{{evidence}}`: a file in `detectors/base/prompts`.

    Args:
        name: of the file.
        words: the first words of its answers; the first one of them is the Yes.
    """

    def __init__(self, name: str, words: Sequence[str] = ("Yes", "No")) -> None:
        self.name = name
        self._words = words
        self.prompt: Prompt = load_prompt("hallulab.detectors.base", name)

    async def ask(self, session: Session, evidence: str, statement: str) -> float:
        """Return the probability of Yes, corrected for the session's model. It takes one call of one token.

        Raises:
            UnparseableAnswer: the model says none of the words.
            ModelError: no answer.
        """
        values = {"evidence": evidence, "statement": statement}
        messages = self.prompt.fill({name: values[name] for name in self.prompt.placeholders})
        answer = await session.choose(self.name, messages, self._words)
        return find_calibration(find_catalogue_name(session.client), self.name).apply(answer[self._words[0]])


def find_calibration(model: str | None, quantity: str) -> Calibration:
    """Return the correction of a quantity for a model of the catalogue; none where nothing was fitted."""
    return _load_calibrations().get(model or "", {}).get(quantity, Calibration())


def list_calibrations(model: str | None) -> dict[str, dict[str, float]]:
    """Return all corrections for a model of the catalogue, by quantity; versions depend on them."""
    return {name: each.model_dump() for name, each in _load_calibrations().get(model or "", {}).items()}


@cache
def _load_calibrations() -> Mapping[str, Mapping[str, Calibration]]:
    text = files("hallulab.detectors.base").joinpath("calibration.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, dict[str, Calibration]]).validate_python(yaml.safe_load(text) or {})


SHORT_WORDS = 2
"""A clause with at most this many words (`yes`, `of course`, the next member of a list) counts as its
neighbours do."""

_SYMPATHY = re.compile(
    r"\bsorry (?:to hear|about|for|that (?:you|this))\b"
    r"|\A\W*(?:\w+ ){0,3}thank(?:s| you)\b(?! to)|\byou(?:'re| are) (?:most |very )?welcome\b(?! to)"
    r"|\bhope (?:this|that|it) helps\b|\bgood luck\b"
    r"|\A\W*(?:hello|hi|dear|regards|sincerely)\b(?:\W+\w+){0,3}\W*\Z",
    re.IGNORECASE,
)
"""Phrases about the user, in which a name that the user gave may come back."""
_OFFER = re.compile(
    r"\bfeel free\b|\blet me know\b|\bhow (?:can|may) i (?:help|assist)\b"
    r"|(?:\A\W*|\b(?:i|we)(?:'m| am|'re| are|'d be| would be) (?:\w+ )?)"
    r"(?:happy|glad|here) to (?:help|assist)\b"
    r"|\bi(?:'ll| will| can| could) (?:\w+ ){0,2}(?:help|assist|guide) you\b"
    r"|\A\W*(?:here(?:'s| is| are)|below is)\b.*\b(?:sample|template|draft|example|steps)\b"
    r"|\bplease (?:provide|share|tell me|give me)\b",
    re.IGNORECASE,
)
_NARROW = re.compile(
    r"\bi understand (?:how(?: \w+)? (?:this|that|it|you)|your)\b"
    r"|(?:\bif (?:you (?:need|have|want|would like)|there(?:'s| is))|\bor (?:you )?(?:need|have|want))"
    r" (?:any |more |further |other )*(?:help|assistance|questions?|anything)\b",
    re.IGNORECASE,
)
"""Phrases that excuse only a clause with little else: a claim may stand beside them without a comma."""
_JOINT = re.compile(
    r"[,;:()…–—]|\s-+\s|\b(?:and|but|so(?! much\b)|because|since|although|though|however)\b", re.IGNORECASE
)
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|ninety|hundred|thousand|lakh|crore)\b",
    re.IGNORECASE,
)
_VEILED_CLAIM = re.compile(r"\b(?:did|do) you know (?:that|,)|\bdid you know\b", re.IGNORECASE)
_ASKING = re.compile(
    r"\W*(?:(?:and|but|or|so|well|please|ok|okay|yes|no|yeah|oh|ah|hi|hello)\W+)*(?:what|when|where|who|whom|whose|which|why|how|do|does|did"
    r"|is|are|was|were|am|can|could|would|will|shall|should|may|might|have|has|had|any|anything)\b",
    re.IGNORECASE,
)


def claims_nothing(sentence: str) -> bool:
    """Return whether a sentence is a question, or nothing but courtesies.

    A question begins like one and has one line: `it opens at 6, shall I book?` claims something, and so does
    `did you know that it opens at 6?`.

    Otherwise each clause must be a courtesy, or have at most `SHORT_WORDS` words and stand beside one.
    Clauses end at commas, semicolons, colons, brackets, dashes, and at conjunctions such as `and`, `but`,
    `so`, `because`. An offer (`feel free to call the helpline`) is a courtesy only if it names nothing: no
    word has a capital but the sentence's first and `I`. Sympathy, thanks and greetings may repeat a name.
    Numbers claim, except in a question.
    """
    plain = sentence.replace("’", "'").strip()
    if plain.endswith("?") and "\n" not in plain:
        return _ASKING.match(plain) is not None and _VEILED_CLAIM.search(plain) is None
    if _NUMBER.search(plain):
        return False
    clauses = [
        clause
        for region in split_sentences(plain)
        for clause in _JOINT.split(_uncapitalised(region.of(plain)))
    ]
    courteous = any(_SYMPATHY.search(clause) or _offers(clause) for clause in clauses)
    return courteous and not any(_claims(clause) for clause in clauses)


def _uncapitalised(sentence: str) -> str:
    first = _WORD.search(sentence)
    at = first.start() if first else 0
    return sentence[:at] + sentence[at : at + 1].lower() + sentence[at + 1 :]


def _claims(clause: str) -> bool:
    if _SYMPATHY.search(clause):
        return False
    found = _WORD.findall(clause)
    names = any(word[0].isupper() and word != "I" for word in found)
    return names or (len(found) > SHORT_WORDS and not _offers(clause))


def _offers(clause: str) -> bool:
    if _OFFER.search(clause):
        return True
    rest, times = _NARROW.subn(" ", clause)
    # What is offered stands behind the phrase: `if you need help with drafting a complaint`.
    most = 2 * SHORT_WORDS if _NARROW.match(clause.strip()) else SHORT_WORDS
    return times > 0 and len(_WORD.findall(rest)) <= most


MIN_WORDS = 4
"""Shorter sentences are not judged alone."""


def split_statements(reply: str) -> list[Region]:
    """Return the sentences with words in them; one with fewer than `MIN_WORDS` words joins the next one.

    `Yes!` alone says nothing that evidence could support.
    """
    joined: list[Region] = []
    start: int | None = None
    for region in split_sentences(reply):
        first = region.start if start is None else start
        text = reply[first : region.end]
        if not split_words(text):
            continue
        if len(split_words(text)) < MIN_WORDS and not claims_nothing(text):
            start = first
            continue
        joined.append(Region(first, region.end))
        start = None
    if start is not None:
        last = joined.pop().start if joined else start
        joined.append(Region(last, len(reply.rstrip())))
    return joined

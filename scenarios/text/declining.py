"""Replies that answer, decline, ask back or are polite, told by rules, mostly for English.

A sentence declines if it says that whoever answers, or the documents, lack something, and claims nothing
else: `I do not have that information`, `The passages do not say who pays`. There is nothing to judge in it.
The rules would rather miss a declining sentence than pass over a claim. Those for other languages are in
`hallulab.scenarios.text.refusals`. `python -m benchmarks.declining`
measures how often they are right.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Literal

from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.lacking import (
    ANOTHER_LACK,
    BEFORE,
    DENIES,
    DOCUMENTS,
    ELIDED,
    FINITE_VERB,
    HARD_TO_SAY,
    HEARD,
    LIST,
    OPENERS,
    UNTOLD,
    adds_nothing,
    any_of,
    compile_any,
    is_untold,
    tells_lack,
)
from hallulab.scenarios.text.languages import ENGLISH, identify_language
from hallulab.scenarios.text.refusals import IN_LATIN_SCRIPT, REFUSALS, classify_in, declines_in
from hallulab.scenarios.text.spans import Region, split_spoken_sentences

ReplyKind = Literal["answers", "declines", "asks back", "courtesy"]
"""`answers`: it claims something, perhaps among refusals. `declines`: it says that it cannot answer, or who
else may, and claims nothing. `asks back`: it asks the user. `courtesy`: thanks, a greeting, an offer."""

_CLAUSE_END = compile_any(
    r"[.!?…]\s(?=(?-i:[A-Z]))|[;:]\s|\s[-–—]+\s|—",
    r",?\s(?:but|however|nevertheless|nonetheless|although|though|whereas|while|because|since|therefore"
    r"|so(?! (?:much|many)\b))\b,?",
    r",?(?<!such)\sas (?=(?:it|they|this|that|the|these|those|there|each|you|\w+s)\b)",
    r",\s(?:which|who|whose|where)\b",
    r"(?:,\s(?:and|or)\b(?! (?:whether|how|who|when|where|(?:passages? )?\d)\b)|\()"
    rf"(?=[^.;:)]{{0,120}}{FINITE_VERB})",
    rf"\sand\s(?={ANOTHER_LACK})",
    r"(?:,|\sand|\sor)\s(?=(?:they|you|this|he|she|we)\b"
    r"|it\b(?! is (?:difficult|hard|impossible|not possible)| cannot)|there\b(?! \w+ (?:no|not|limited)\b)"
    r"|i\b(?! (?:am|could|can|did|do|have) ?(?:not|no|unable)\b| \w+n't\b|'m (?:not|un)))",
)
"""Where another clause begins, which may claim something; a comma before what is lacking is no such place."""
_EXCUSE = compile_any(
    rf"(?!\W*(?:yes|no)\b){OPENERS}\W*(?:for|about)? ?(?:(?:the|any|this) (?:confusion|inconvenience|trouble"
    r"|misunderstanding)\W*)?(?:in my previous response)?\W*\Z"
)
_ASIDE = compile_any(
    r"only in the context of\b",
    r"\bi (?:can|could|will) (?:\w+ )?(?:provide|give|offer) (?:some|general|more)\b",
    r"\A\W*(?:i am|i'm) (?:just|only) an? (?:\w+ ){0,3}(?:assistant|bot|chatbot|model)\W*\Z",
    r"\b(?!the answer is\b)(?:the|this|these|my) (?:answers?|instructions|steps|response)(?: above)?"
    r" (?:is|are) (?:limited|specific) to\b",
)
_DESCRIBING = compile_any(
    rf"{OPENERS}\W*{DOCUMENTS} (?:(?:only|mainly|primarily|briefly) )?"
    rf"(?:{any_of('discuss describe mention provide cover address contain explain offer')}(?:e?s)?"
    r"|focus(?:es)? on|talks? about|deals? with)\b(?! (?:that|whether)\b)"
)
"""`The passages discuss frying`: no claim beside what they lack, unless it names or numbers something."""
_DESCRIBING_STILL = compile_any(
    rf"\W*(?:it|they) (?:(?:do|does|only) )?{any_of('discuss describe mention offer provide')}(?:e?s)?"
    rf" (?:\w+ ){{0,2}}?{any_of('advice examples ideas information suggestions tips')}\b(?! that\b)"
)
"""`they do offer some suggestions`, beside what documents lack."""
_POINTING = compile_any(
    rf"{OPENERS}\W*(?:please |(?:you|it) (?:may|might|can|could|should|would)(?: also| always| then)?"
    r"(?: want to| wish to| need to| be (?:best|necessary|advisable|helpful|better) to)? "
    r"|(?:i|we)(?:'d| would)?(?: \w+ly)? (?:recommend|suggest|advise|encourage)(?: that)?(?: you)?"
    r"(?: to)? )?"
    r"(?:ask(?! for\b)|call|check|consult|contact|e-?mail|get in touch|reach out|refer to|speak|visit"
    r"|write to|see an? (?:doctor|physician|pharmacist|lawyer|specialist))"
    r"(?:ing)?\b"
)
"""`Please contact the help desk`."""
_ASKING = compile_any(
    rf"{OPENERS}\W*(?:(?:please|kindly) (?:provide|share|specify|clarify|tell me|give me)"
    r"|i(?:'d| would)? need (?:(?:\w+ ){0,3}(?:information|details|context)"
    r"|(?:to know )?your \w+(?: \w+){0,2}(?=\W*\Z|[,;]| so\b| to (?:check|find|help|look))))\b",
    r"\W*(?:just )?to (?:be (?:sure|clear)|clarify|confirm)[,:] [^.!?]{1,200}\?\W*\Z",
    r"\W*before i (?:\w+ ){0,3}?\w+, (?:may|can|could) (?:i|you) [^.!?]{1,200}\?\W*\Z",
)
_SPEAKER = compile_any(r"\b(?:i|we)\b")
_RULE = re.compile(r"(\W{20})\W+")
_AMBIGUOUS = compile_any(
    r"\W*there are (?:many|several|(?:quite )?a few|a couple of) [^.;]{0,80}\byou (?:could|might|may) be"
    r" (?:referring|asking|talking|thinking)\b(?!.*\b(?:which|who|whose|where|is|are|was|were|has|had)\b)"
)
"""`There are many libraries you could be referring to, such as …`: the beginning of a question."""
_OFFERING_HELP = compile_any(
    r"\b(?:help|assist|anything else|(?:shall|should) i|would you like|do you (?:want|need)|i do for you)\b"
)
_POLITE = compile_any(
    r"\W*(?:(?:i'm )?glad (?:i could|to) help|i hope (?:this|that|it|the \w+) helps)\b[^,;:]*\Z",
    r"\W*(?:have an? (?:\w+ )?(?:day|evening|weekend)|stay safe|take care|my pleasure|no problem|(?:good)?bye"
    r"|good (?:morning|afternoon|evening|day)|enjoy your \w+|welcome to (?:the |our )?[\w' ]{1,40})\W*\Z",
    r"\W*(?:(?:sure|okay|of course)\W+)?let me (?:check|look)\b(?: \w+){0,4}\W*\Z",
    rf"{OPENERS}\W*i (?:did not|didn't) (?:quite )?(?:catch|get|understand) (?:that|this|you)\W*\Z",
)


def is_declining(sentence: str) -> bool:
    """Return whether a sentence says that something is not known or not told, and claims nothing else.

    A description of documents beside it is no claim about the subject, also where it names something.

    >>> is_declining("I'm sorry, but the documents do not say who pays the fee.")
    True
    >>> is_declining("I do not know who pays the fee, but it is 5 euros.")
    False
    """
    if _declines(sentence, lambda clause: _DESCRIBING.match(clause) is not None):
        return True
    return _declines_elsewhere(sentence)


def _declines_elsewhere(sentence: str) -> bool:
    """Return whether a sentence declines in another language than English."""
    return any(declines_in(code, sentence) for code in _list_other_languages(sentence))


def _list_other_languages(text: str) -> Sequence[str]:
    """Return the languages whose rules may read a text; a few words of Latin script may be of any of them."""
    language = identify_language(text)
    if language == ENGLISH:
        return ()
    if language is None or language in IN_LATIN_SCRIPT or language not in REFUSALS:
        return IN_LATIN_SCRIPT
    return (language,)


def _declines(sentence: str, is_description: Callable[[str], bool]) -> bool:
    if DENIES.search(sentence) is None:
        return False
    if _lists_untold(_write_plainly(sentence)):
        return True
    clauses = _split_clauses(sentence)
    lacking = [
        tells_lack(clause) or (ELIDED.match(clause) is not None and is_description(before))
        for before, clause in pairwise(["", *clauses])
    ]
    pairs = list(zip(lacking, clauses, strict=True))
    of_documents = any(lack and not _SPEAKER.search(clause) for lack, clause in pairs)
    return any(lacking) and all(
        lack or _is_harmless(clause) or (of_documents and (_follows_lack(clause) or is_description(clause)))
        for lack, clause in pairs
    )


def _is_bare_description(clause: str) -> bool:
    return adds_nothing(_DESCRIBING, clause)


def _follows_lack(clause: str) -> bool:
    """Return whether a clause claims nothing beside one that says what documents lack."""
    hard = HARD_TO_SAY.search(clause)
    return adds_nothing(_DESCRIBING_STILL, clause) or (
        hard is not None and BEFORE.match(clause[: hard.start()]) is not None
    )


def find_declining(sentence: str) -> list[Region]:
    """Return what of a sentence declines: all of it, or clauses about documents beside claims.

    A description of documents that names or numbers something is a claim here: it may be wrong.

    Of a sentence with doubled white space no clauses are told.

    >>> find_declining("The texts do not say who pays, but it is 5 euros.")
    [Region(start=0, end=29)]
    """
    if _declines(sentence, _is_bare_description) or _declines_elsewhere(sentence):
        return [Region(0, len(sentence))]
    plain = _write_plainly(sentence)
    if len(plain) != len(sentence) or DENIES.search(plain) is None:
        return []
    clauses = [(clause, clause.of(plain)) for clause in _cut_clauses(plain)]
    return [clause for clause, said in clauses if tells_lack(said) and not _SPEAKER.search(said)]


def classify_reply(reply: str) -> ReplyKind | None:
    """Return what a reply does; None: it has no words, or is in a language without rules.

    >>> classify_reply("I cannot find that. Please contact the help desk.")
    'declines'
    >>> classify_reply("Ich kann dazu leider nichts finden.")
    'declines'
    """
    sentences = [region.of(reply) for region in split_spoken_sentences(reply)]
    if not sentences:
        return None
    language = identify_language(reply)
    kind = _join_kinds(map(_classify_sentence, sentences)) if language in (ENGLISH, None) else "answers"
    if kind == "answers":
        for code in _list_other_languages(reply):
            found = _join_kinds(classify_in(code, sentence) for sentence in sentences)
            if found != "answers":
                return found
    return kind if language in (ENGLISH, None, *REFUSALS) else None


def _join_kinds(kinds: Iterable[ReplyKind | None]) -> ReplyKind:
    """Return what a reply does whose sentences do that; a claim anywhere answers."""
    found = set()
    for kind in kinds:
        if kind == "answers":
            return kind
        found.add(kind)
    order: tuple[ReplyKind, ...] = ("declines", "asks back", "courtesy")
    return next((kind for kind in order if kind in found), "answers")


def _classify_sentence(sentence: str) -> ReplyKind | None:
    """Return what a sentence does; None: it only describes documents, as the sentences beside it say why."""
    plain = _write_plainly(sentence)
    if _declines(sentence, _is_bare_description):
        return "declines"
    if _AMBIGUOUS.match(plain) or adds_nothing(_ASKING, plain):
        return "asks back"
    if claims_nothing(sentence):
        return "asks back" if plain.endswith("?") and not _OFFERING_HELP.search(plain) else "courtesy"
    if _EXCUSE.match(plain) or _POLITE.match(plain):
        return "courtesy"
    if adds_nothing(_POINTING, plain):
        return "declines"
    return None if all(map(_is_harmless, _split_clauses(sentence))) else "answers"


def _split_clauses(sentence: str) -> list[str]:
    plain = _write_plainly(sentence)
    return [clause.of(plain) for clause in _cut_clauses(plain)]


def _cut_clauses(plain: str) -> list[Region]:
    ends = [match.span() for match in _CLAUSE_END.finditer(plain)]
    cuts = pairwise([(0, 0), *ends, (len(plain), len(plain))])
    clauses = (Region(before[1], after[0]) for before, after in cuts)
    return [clause for clause in clauses if re.search(r"\w", clause.of(plain))]


def _write_plainly(sentence: str) -> str:
    # A rule of dots would have the patterns look at it from each of its places, several times.
    return _RULE.sub(r"\1", " ".join(sentence.replace("’", "'").split()))


def _lists_untold(sentence: str) -> bool:
    """Return whether a sentence is `Music, parking, and Wi-Fi are not given in the passages` and no more."""
    untold = UNTOLD.search(sentence)
    if untold is None or _CLAUSE_END.search(sentence, untold.end()):
        return False
    return is_untold(sentence) and LIST.match(sentence[: untold.start()]) is not None


def _is_harmless(clause: str) -> bool:
    if _EXCUSE.match(clause) or _ASIDE.search(clause) or claims_nothing(clause):
        return True
    return any(adds_nothing(beginning, clause) for beginning in (_DESCRIBING, HEARD, _POINTING))

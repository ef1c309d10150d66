"""Replies that answer, decline, ask back or are polite, told by rules for English.

A sentence declines if it says that whoever answers, or the documents, lack something, and claims nothing
else: `I do not have that information`, `The passages do not say who pays`. There is nothing to judge in it.
The rules would rather miss a declining sentence than pass over a claim. `python -m benchmarks.declining`
measures how often they are right.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Literal

from hallulab.scenarios.text.courtesies import claims_nothing
from hallulab.scenarios.text.languages import ENGLISH, identify_language
from hallulab.scenarios.text.spans import Region, split_spoken_sentences

ReplyKind = Literal["answers", "declines", "asks back", "courtesy"]
"""`answers`: it claims something, perhaps among refusals. `declines`: it says that it cannot answer, or who
else may, and claims nothing. `asks back`: it asks the user. `courtesy`: thanks, a greeting, an offer."""


def _any(*phrases: str) -> str:
    """Return a pattern of any of the words; a string may hold several."""
    return f"(?:{'|'.join(word for phrase in phrases for word in phrase.split())})"


def _compile(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_ADVERBS = (
    r"(?:"
    + _any(
        "accurately actually also clearly currently definitively directly even exactly explicitly fully",
        "necessarily personally precisely really specifically yet",
    )
    + r" )*+"
)
_DO_NOT = rf"(?:do|does|did)(?: not|n't) {_ADVERBS}"
_CANNOT = rf"(?:cannot|can ?not|can't|could ?not|couldn't|will not|won't) {_ADVERBS}"
_FACTS = (
    r"(?:(?!(?:not|but|who|which|is|are)\b)[\w'-]+ ){0,4}?"
    + _any(
        "information info details? data mention guidance instructions? answers? specifics descriptions?",
        "explanations? figures? recommendations? advice references? history method list values examples?",
    )
    + r"\b"
)
"""A word for facts, after at most four others: `any specific details`."""
_TEXTS = _any("documents? documentation texts? sources? materials? articles information data content details")
_GIVEN = _any("provided given available retrieved supplied")
PASSAGES = (
    r"(?:passages?(?: \d\b)?|excerpts?|snippets?|contexts?|knowledge base|search results?"
    rf"|{_GIVEN} {_TEXTS}|{_TEXTS} (?:{_GIVEN}|(?:that )?i (?:\w+ ){{0,2}}(?:have|given|found)))"
)
"""Words that mean nothing but what a chatbot was given to read."""
_DOCUMENTS = (
    rf"\b(?:(?:the|these|this|those|my|our|your|all|any) )?(?:\w+ ){{0,2}}?(?:{PASSAGES}|{_TEXTS})"
    r"(?: at hand| alone)?"
)
_TELL = (
    _any(
        "mention specify state say indicate discuss address cover explain describe tell elaborate clarify",
        "answer reveal",
    )
    + r"\b"
)
_HOLD = rf"{_any('provide contain include give offer have hold')}\b"
_TOLD = (
    _any(
        "mentioned specified stated provided covered discussed included addressed described explained given",
        "listed available found clear",
    )
    + r"\b"
)
_HELP = _any(
    "access advise answer assist browse comment comply confirm deny determine discuss explain find fulfill?",
    "give help identify locate open predict provide recommend respond say see share speculate suggest tell",
    "verify view",
)

_LACK = _compile(
    # Of whoever answers. `We do not have` and `we cannot` may well tell of a company.
    rf"\bi {_DO_NOT}(?:have|know|find|see|understand (?:your|the|what))\b",
    rf"\bwe {_DO_NOT}(?:know\b|have {_FACTS})",
    rf"\bi {_CANNOT}(?:{_HELP}|be able|do (?:that|this|it)|look (?:that|it|this) up)\b",
    rf"\bwe {_CANNOT}{_any('advise answer assist determine find help locate say tell')}\b",
    rf"\b(?:i|we)(?:'m| am|'re| are| was| were| will be|'ll be) {_ADVERBS}(?:unable|not {_ADVERBS}able) to\b",
    rf"\b(?:i|we) (?:wasn't|weren't|aren't) {_ADVERBS}able to\b|\bit (?:is|was) {_ADVERBS}unable to\b",
    r"\bi(?:'m| am) (?:not (?:allowed|aware|certain|familiar|permitted|sure)|unaware)\b",
    r"\bi (?:have no|have nothing|haven't|lack|neither have)\b(?! doubt)|\bi (?:must|have to) decline\b",
    r"\b(?:that|this|it)(?:'s| is| falls) (?:outside|beyond) (?:of )?(?:my|the)\b",
    rf"(?:\A\W*|: )(?:unable|not able|cannot|can't) (?:to )?{_ADVERBS}(?:answer|provide|find|help|assist)\b",
    # Of documents.
    rf"{_DOCUMENTS} (?:{_DO_NOT}|cannot )(?:{_TELL}|{_HOLD} {_FACTS})",
    rf"\b(?:(?:the|this|my|our) )?{PASSAGES} {_DO_NOT}{_HOLD}",
    rf"\b(?:it|they) {_ADVERBS}{_DO_NOT}{_HOLD} {_FACTS}",
    rf"\b(?:none of|nothing in|neither of) {_DOCUMENTS}\b|{_DOCUMENTS} (?:is|are) silent\b",
    # Of facts.
    r"\bthere (?:is|are|was|were)(?: no|n't| not| limited| little| insufficient)"
    rf"(?: any| enough)? {_FACTS}(?! desk)",
    rf"(?:\A\W*|: )no {_FACTS} (?:(?:about|on|regarding) (?:\w+ ){{1,6}}?)?(?:is|are|was|were|could be)\b",
    rf"(?:\A\W*|: )no {_FACTS} (?:about|on|regarding)\b",
)
"""Beginnings of what is lacking; whatever follows in the clause is what it is about."""
_DENIES = _compile(
    r"\b(?:beyond|cannot|decline|difficult|hard|impossible|insufficient|lack|limited|little|neither|no|none|not"
    r"|nothing|outside|silent|unable|unaware)\b|n['’]t\b"
)
"""Each of them has such a word; most sentences have none, and are told by that alone."""
_UNTOLD = _compile(rf"\b(?:is|are|was|were)(?: not|n't) {_ADVERBS}{_TOLD} (?:in|by|from) {_DOCUMENTS}\b")
"""`is not stated in the passages`, behind what it is about."""
_ELIDED = _compile(rf"\W*(?:it |they )?{_ADVERBS}{_DO_NOT}(?:{_TELL}|{_HOLD} {_FACTS})")
"""`do not say`, behind a clause about documents."""
_HARD_TO_SAY = _compile(
    rf"\bit(?:'s| is) (?:difficult|hard|impossible|not possible) (?:for me )?to {_ADVERBS}"
    rf"{_any('say determine tell provide give answer know conclude')}\b",
    r"\b(?:(?:an? (?:\w+ )?)?answer|(?:your |the |this )?question|it|this|that) cannot be "
    rf"{_any('answered confirmed determined established given provided')}\b",
)
_BASIS = _compile(
    r"\b(?:based (?:solely |only )?on|from|in|with|without|using) "
    rf"(?:{_DOCUMENTS}\b|(?:\w+ ){{0,3}}information\b)"
)
"""With this beside it, it is documents that make something hard to say, not the world."""

FINITE_VERB = (
    r"(?:\d|\b"
    + _any(
        "am are be can could did do does had has have is may might must shall should was were will would",
    )
    + r"\b)"
)
_CLAUSE_END = _compile(
    r"[.!?…]\s(?=(?-i:[A-Z]))|[;:]\s|\s[-–—]+\s|—",
    r",?\s(?:but|however|nevertheless|nonetheless|although|though|whereas|while|because|since|therefore"
    r"|so(?! (?:much|many)\b))\b,?",
    r",?(?<!such)\sas (?=(?:it|they|this|that|the|these|those|there|each|you|\w+s)\b)",
    r",\s(?:which|who|whose|where)\b",
    rf"(?:,\s(?:and|or)\b|\()(?=[^.;:)]{{0,120}}{FINITE_VERB})",
    r"(?:,|\sand|\sor)\s(?=(?:they|you|this|he|she|we)\b"
    r"|it\b(?! is (?:difficult|hard|impossible|not possible)| cannot)|there\b(?! \w+ (?:no|not|limited)\b)"
    r"|i\b(?! (?:am|could|can|did|do|have) ?(?:not|no|unable)\b| \w+n't\b|'m (?:not|un)))",
)
"""Where another clause begins, which may claim something; a comma before what is lacking is no such place."""
_OPENERS = (
    r"(?:\W*(?:"
    + _any(
        "additionally again also and answer apologies but hello hence hi however moreover no note overall",
        "regrettably sadly sorry that therefore thus unfortunately well yes",
    )
    + r"|as such|please note|to be clear|(?:i am|i'm) (?:\w+ )?(?:sorry|afraid)|i apologi[sz]e"
    r"|it (?:seems|appears)|in (?:general|addition|short|summary)|at (?:this|the) (?:time|moment|point)"
    r"|as an? (?:\w+ ){1,3}(?:assistant|model)|the (?:\w+ )?answer (?:to [^,:]{0,60} )?is"
    r"|(?:about|according to|as for|as of|based on|concerning|for|if|regarding|to|with|without) [^,]+"
    r"(?:,[^,]+){0,3},)(?=\W|\Z))*+"
)
"""Words that may stand before what is lacking, and claim nothing."""
_BEFORE = _compile(rf"{_OPENERS}\W*\Z")
_EXCUSE = _compile(
    rf"(?!\W*(?:yes|no)\b){_OPENERS}\W*(?:for|about)? ?(?:(?:the|any|this) (?:confusion|inconvenience|trouble"
    r"|misunderstanding)\W*)?(?:in my previous response)?\W*\Z"
)
_ASIDE = _compile(
    r"only in the context of\b",
    r"\bi (?:can|could|will) (?:\w+ )?(?:provide|give|offer) (?:some|general|more)\b",
    r"(?!the answer is\b)(?:the|this|these|my) (?:answers?|instructions|steps|response)(?: above)? (?:is|are)"
    r" (?:limited|specific) to\b",
)
_DESCRIBING = _compile(
    rf"{_OPENERS}\W*{_DOCUMENTS} (?:(?:only|mainly|primarily|briefly) )?"
    rf"(?:{_any('discuss describe mention provide cover address contain explain offer')}(?:e?s)?"
    r"|focus(?:es)? on|talks? about|deals? with)\b(?! (?:that|whether)\b)"
)
"""`The passages discuss frying`: no claim beside what they lack, unless it names or numbers something."""
_POINTING = _compile(
    rf"{_OPENERS}\W*(?:please |(?:you|it) (?:may|might|can|could|should|would)(?: also| always| then)?"
    r"(?: want to| wish to| need to| be (?:best|necessary|advisable|helpful|better) to)? "
    r"|(?:i|we)(?:'d| would)?(?: \w+ly)? (?:recommend|suggest|advise|encourage)(?: that)?(?: you)?"
    r"(?: to)? )?"
    r"(?:ask(?! for\b)|call|check|consult|contact|e-?mail|get in touch|reach out|refer to|speak|visit"
    r"|write to)"
    r"(?:ing)?\b"
)
"""`Please contact the help desk`."""
_ASKING = _compile(
    rf"{_OPENERS}\W*(?:please (?:provide|share|specify|clarify|tell me|give me)"
    r"|i(?:'d| would)? need (?:\w+ ){0,3}(?:information|details|context))\b"
)
_SPEAKER = _compile(r"\b(?:i|we)\b")
_RULE = re.compile(r"(\W{20})\W+")
_NAMED = re.compile(r"[A-Z](?<!\AI)(?<! I)|\d|@|://|www\.")
_AMBIGUOUS = _compile(
    r"\W*there are (?:many|several|(?:quite )?a few|a couple of) [^.;]{0,80}\byou (?:could|might|may) be"
    r" (?:referring|asking|talking|thinking)\b(?!.*\b(?:which|who|whose|where|is|are|was|were|has|had)\b)"
)
"""`There are many libraries you could be referring to, such as …`: the beginning of a question."""
_OFFERING_HELP = _compile(
    r"\b(?:help|assist|anything else|(?:shall|should) i|would you like|do you (?:want|need))\b"
)
_POLITE = _compile(
    r"\W*(?:i'm glad (?:i could|to) help|glad to help|i hope (?:this|that|it|the \w+) helps)\b[^,;:]*\Z",
    r"\W*(?:have an? (?:\w+ )?(?:day|evening|weekend)|stay safe|take care|my pleasure|no problem)\W*\Z",
)


def is_declining(sentence: str) -> bool:
    """Return whether a sentence says that something is not known or not told, and claims nothing else.

    >>> is_declining("I'm sorry, but the documents do not say who pays the fee.")
    True
    >>> is_declining("I do not know who pays the fee, but it is 5 euros.")
    False
    """
    if _DENIES.search(sentence) is None:
        return False
    clauses = _split_clauses(sentence)
    lacking = [
        _tells_lack(clause) or (_ELIDED.match(clause) is not None and _adds_nothing(_DESCRIBING, before))
        for before, clause in pairwise(["", *clauses])
    ]
    return any(lacking) and all(
        lack or _is_harmless(clause) for lack, clause in zip(lacking, clauses, strict=True)
    )


def find_declining(sentence: str) -> list[Region]:
    """Return what of a sentence declines: all of it, or clauses about documents beside claims.

    Of a sentence with doubled white space no clauses are told.

    >>> find_declining("The texts do not say who pays, but it is 5 euros.")
    [Region(start=0, end=29)]
    """
    if is_declining(sentence):
        return [Region(0, len(sentence))]
    plain = _write_plainly(sentence)
    if len(plain) != len(sentence) or _DENIES.search(plain) is None:
        return []
    clauses = [(clause, clause.of(plain)) for clause in _cut_clauses(plain)]
    return [clause for clause, said in clauses if _tells_lack(said) and not _SPEAKER.search(said)]


def classify_reply(reply: str) -> ReplyKind | None:
    """Return what a reply does; None: it has no words, or is in another language than English.

    >>> classify_reply("I cannot find that. Please contact the help desk.")
    'declines'
    >>> classify_reply("Ich kann dazu leider nichts finden.") is None
    True
    """
    sentences = [region.of(reply) for region in split_spoken_sentences(reply)]
    if not sentences or identify_language(reply) not in (ENGLISH, None):
        return None
    found = set()
    for sentence in sentences:
        kind = _classify_sentence(sentence)
        if kind == "answers":
            return kind
        found.add(kind)
    kinds: tuple[ReplyKind, ...] = ("declines", "asks back", "courtesy")
    return next((kind for kind in kinds if kind in found), "answers")


def _classify_sentence(sentence: str) -> ReplyKind | None:
    """Return what a sentence does; None: it only describes documents, as the sentences beside it say why."""
    plain = _write_plainly(sentence)
    if is_declining(sentence):
        return "declines"
    if _AMBIGUOUS.match(plain) or _adds_nothing(_ASKING, plain):
        return "asks back"
    if claims_nothing(sentence):
        return "asks back" if plain.endswith("?") and not _OFFERING_HELP.search(plain) else "courtesy"
    if _EXCUSE.match(plain) or _POLITE.match(plain):
        return "courtesy"
    if _adds_nothing(_POINTING, plain):
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


def _tells_lack(clause: str) -> bool:
    lack = _LACK.search(clause)
    if lack is None and _BASIS.search(clause):
        lack = _HARD_TO_SAY.search(clause)
    if lack is not None:
        return _BEFORE.match(clause[: lack.start()]) is not None
    untold = _UNTOLD.search(clause)
    return untold is not None and re.search(FINITE_VERB, clause[: untold.start()]) is None


def _is_harmless(clause: str) -> bool:
    if _EXCUSE.match(clause) or _ASIDE.search(clause) or claims_nothing(clause):
        return True
    return _adds_nothing(_DESCRIBING, clause) or _adds_nothing(_POINTING, clause)


def _adds_nothing(beginning: re.Pattern[str], clause: str) -> bool:
    """Return whether a clause begins like that, and has no name, number or address behind it."""
    begun = beginning.match(clause)
    return begun is not None and _NAMED.search(clause, begun.end()) is None

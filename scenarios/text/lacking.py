"""Clauses that say what is not known, or what documents lack: patterns for English.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re


def any_of(*phrases: str) -> str:
    """Return a pattern of any of the words; a string may hold several."""
    return f"(?:{'|'.join(word for phrase in phrases for word in phrase.split())})"


def compile_any(*patterns: str) -> re.Pattern[str]:
    """Compile a pattern that matches what any of the patterns does, case aside."""
    return re.compile("|".join(patterns), re.IGNORECASE)


_ADVERBS = (
    r"(?:"
    + any_of(
        "accurately actually also clearly currently definitively directly even exactly explicitly fully",
        "necessarily personally precisely really specifically yet",
    )
    + r" )*+"
)
_DO_NOT = rf"(?:do|does|did)(?: not|n't) {_ADVERBS}"
_CANNOT = rf"(?:cannot|can ?not|can't|could ?not|couldn't|will not|won't) {_ADVERBS}"
_FACTS = (
    r"(?:(?!(?:not|but|who|which|is|are)\b)[\w'-]+ ){0,4}?"
    + any_of(
        "information info details? data mention guidance instructions? answers? specifics descriptions?",
        "explanations? figures? recommendations? advice references? history method list values examples?",
    )
    + r"\b"
)
"""A word for facts, after at most four others: `any specific details`."""
_TEXTS = any_of(
    "documents? documentation texts? sources? materials? articles information data content details"
)
_GIVEN = any_of("provided given available retrieved supplied")
PASSAGES = (
    r"(?:passages?(?: \d\b)?|excerpts?|snippets?|contexts?|knowledge base|search results?"
    rf"|{_GIVEN} {_TEXTS}|{_TEXTS} (?:{_GIVEN}|(?:that )?i (?:\w+ ){{0,2}}(?:have|given|found)))"
)
"""Words that mean nothing but what a chatbot was given to read."""
_READ = (
    r"(?:passages? \d\b(?:(?:,| and|, and| or| &) (?:passage )?\d\b){1,5}"
    rf"|(?:passages?|contexts?|excerpts?) (?:given|provided|above)\b|{_GIVEN} structured data"
    rf"|{_TEXTS} {_GIVEN} (?:to (?:me|us)|here|above)|{PASSAGES})"
)
"""The same in a refusal, which may name several."""
DOCUMENTS = (
    r"\b(?:(?:the|these|this|those|my|our|your|all|any) )?(?:rest of the )?(?:\w+ ){0,2}?"
    rf"(?:{_READ}|{_TEXTS})(?: at hand| alone)?"
)
_TELL = (
    any_of(
        "mention specify state say indicate discuss address cover explain describe tell elaborate clarify",
        "answer reveal",
    )
    + r"\b"
)
_HOLD = rf"{any_of('provide contain include give offer have hold')}\b"
_TOLD = (
    any_of(
        "mentioned specified stated provided covered discussed included addressed described explained given",
        "listed available found clear said",
    )
    + r"\b"
)
_SAY_NOTHING = r"(?:says? nothing|makes? no (?:mention|reference))\b"
_ABOUT = r"(?:(?:about|on|regarding) (?:\w+ ){1,6}?)"
_HELP = any_of(
    "access advise answer assist browse comment comply confirm deny determine discuss explain find fulfill?",
    "give help identify locate open predict provide recommend respond say see share speculate suggest tell",
    "verify view",
)
_WE_HELP = any_of("advise answer assist determine help say tell")
"""Of these a company that is `unable to` says what it does not know, not what it does not do."""
_LACK = compile_any(
    # Of whoever answers. `We do not have` and `we cannot` may well tell of a company.
    rf"\bi {_DO_NOT}(?:have|know|find|hold|possess|see|understand (?:your|the|what))\b",
    rf"\bwe (?:{_DO_NOT}(?:know\b|have {_FACTS})|(?:have no|lack) {_FACTS})",
    rf"\bi {_CANNOT}(?:{_HELP}|be (?:able|certain|sure)|do (?:that|this|it)|look (?:that|it|this) up"
    r"|speak to)\b",
    r"\bi (?:would not|wouldn't) (?:know|be able to)\b|\bthere(?:'s| is) no way for me to\b",
    r"\bi(?:'m| am| can) only (?:able to )?(?:answer|assist|help)\b",
    rf"\bmy (?:knowledge|training)(?: base| data)? {_DO_NOT}(?:contain|cover|extend|include)\b",
    rf"\bwe {_CANNOT}{any_of('advise answer assist determine find help locate say tell')}\b",
    rf"\bi(?:'m| am| was| will be|'ll be) {_ADVERBS}(?:unable|not {_ADVERBS}able) to\b",
    rf"\bwe(?:'re| are| were| will be|'ll be) {_ADVERBS}(?:unable|not {_ADVERBS}able) to {_ADVERBS}"
    rf"(?:{_WE_HELP}\b|(?:confirm|find|provide|verify) (?:(?:it|that|this|whether)\b|{_FACTS}))",
    rf"\b(?:i|we) (?:wasn't|weren't|aren't) {_ADVERBS}able to\b|\bit (?:is|was) {_ADVERBS}unable to\b",
    r"\bi(?:'m| am) (?:not (?:allowed|aware|certain|familiar|permitted|sure)|unaware|unsure)\b",
    r"\bi (?:have no|have nothing|haven't|have not (?:been (?:given|provided)|found|seen)|lack|neither have)"
    r"\b(?! doubt)",
    rf"\bi {_DO_NOT}(?:think|believe) i (?:can|could) {any_of('answer find help say tell')}\b",
    rf"\bit(?:'s| is) (?:not possible|impossible) for me to {_ADVERBS}{_HELP}\b",
    r"(?:\A\W*|\bsorry\W+)no (?:idea|clue)\b\W*\Z",
    r"\bi (?:could find|can find|found|have found) (?:no|nothing)\b|\bi see no (?:information|mention)\b",
    r"\bi (?:must|have to) decline\b",
    rf"\bi {_CANNOT}(?:offer|make (?:an?|any|that|this) (?:determination|prediction|recommendation))\b",
    r"\b(?:that|this|it|(?:the|this|that|your) (?:question|request|topic))(?:'s| is| falls)"
    r" (?:outside|beyond) (?:of )?(?:my|the|what)\b",
    rf"\b(?:that|this|it)(?:'s| is) not something (?:i (?:can|know)|{DOCUMENTS})\b",
    rf"(?:\A\W*|: )(?:unable|not able|cannot|can't) (?:to )?{_ADVERBS}(?:answer|provide|find|help|assist)\b",
    # Of documents.
    rf"{DOCUMENTS} (?:{_DO_NOT}|cannot )(?:{_TELL}|{_HOLD} {_FACTS})",
    rf"\b(?:(?:the|this|my|our) )?{_READ} {_DO_NOT}{_HOLD}",
    rf"\b(?:it|they) {_ADVERBS}{_DO_NOT}{_HOLD} {_FACTS}",
    rf"\b(?:none of|nothing in|neither of) {DOCUMENTS}\b|{DOCUMENTS} (?:is|are) silent\b",
    rf"\b(?:neither|no) {any_of('passage document excerpt source text')}s?"
    rf" {any_of('addresses covers discusses explains mentions says specifies states tells')}\b",
    rf"{DOCUMENTS} (?:fails? to (?:{_TELL}|{_HOLD} {_FACTS})|lacks? {_FACTS}|neither {_TELL}"
    rf"|(?:has|have|makes?|gives?|offers?|provides?|contains?|includes?) no (?:entry|record|{_FACTS})"
    rf"|{_DO_NOT}(?:go into|shed) (?:\w+ )?(?:detail|light)|{_SAY_NOTHING})",
    rf"\b(?:(?:the|these|my) (?:\w+ )?)?{_READ} (?:{_GIVEN} )?(?:is|are|were|was)"
    r" (?:insufficient|irrelevant|unclear|unrelated|not (?:clear|relevant|sufficient))\b",
    rf"\bit (?:is|remains|was) (?:uncertain|unclear|unknown|not (?:clear|certain|known)) (?:from|in)"
    rf" {DOCUMENTS}",
    rf"\b(?:there (?:is|was) nothing|nothing is {_TOLD}) {_ABOUT}?in {DOCUMENTS}\b",
    # Of facts.
    rf"\bthere(?:'s| is| are| was| were) (?:no|not any) (?:[\w'-]+ ){{1,5}}?(?:{_TOLD} )?in {DOCUMENTS}\b",
    r"\bthere(?:'s| is| are| was| were)(?: no|n't| not| limited| little| insufficient)"
    rf"(?: any| enough)? {_FACTS}(?! desk)",
    rf"(?:\A\W*|: )(?:no {_FACTS} (?:about|found|on|regarding)|not enough {_FACTS})\b",
    rf"(?:\A\W*|: )no {_FACTS} {_ABOUT}?(?:is|are|was|were|could be)\b",
    r"(?:\A\W*|: |\bsorry, )no (?:\w+ ){0,2}results? (?:was |were )?found\b",
    rf"(?:\A\W*|: )(?:no (?:\w+ ){{1,4}}?|nothing {_ABOUT})(?:is|are|was|were) {_ADVERBS}{_TOLD} (?:in|by)"
    rf" {DOCUMENTS}",
    rf"\A\W*not {_ADVERBS}{_TOLD} (?:anywhere )?(?:in|by) {DOCUMENTS}",
    rf"\b(?:the|an|that|this|your) (?:answer|information) (?:is|was)(?: not|n't) in {DOCUMENTS}",
    r"(?:\A\W*|: )(?:more|additional|further) (?:information|details?|context) (?:is|are|would be)"
    rf" (?:needed|required|necessary) to {_ADVERBS}{any_of('answer confirm determine say tell')}\b",
    rf"(?:\A\W*|: )(?:(?:any|further|more|specific|the) )?(?:information|details?) {_ABOUT}"
    rf"(?:(?:is|are|was|were)(?: not|n't) {_ADVERBS}{_TOLD}(?! to\b)|(?:is|are) missing from {DOCUMENTS})",
)
"""Beginnings of what is lacking; whatever follows in the clause is what it is about."""
DENIES = compile_any(
    r"\b(?:additional|beyond|cannot|decline|difficult|fails?|further|hard|impossible|insufficient|irrelevant"
    r"|lacks?|limited|little|missing|more|neither|no|none|not|nothing|only|outside|silent|unable|unaware"
    r"|uncertain|unclear|unknown|unrelated|unsure)\b|n['’]t\b"
)
"""Each of them has such a word; most sentences have none, and are told by that alone."""
UNTOLD = compile_any(
    rf"\b(?:is|are|was|were)(?: not|n't) {_ADVERBS}(?:{_TOLD} (?:(?:anywhere )?(?:in|by|from) {DOCUMENTS}\b"
    r"|in (?:any|enough|great|sufficient) detail\b)|(?:accessible|available|known|visible) to (?:me|us)\b"
    rf"|in (?:(?:the|these|my) )?{_READ})"
)
"""`is not stated in the passages`, behind what it is about."""
LIST = compile_any(r"\W*(?:[\w'-]++ ?){1,6}(?:, (?:[\w'-]++ ?){1,6}){2,9},? ?\Z")
"""`Music, parking, and Wi-Fi `, before it."""
_SUCH_AS = compile_any(r", (?:such as|including|like) ")
_INDIRECT = compile_any(r"\W*(?:whether|who|whose|what|how|when|where|which|why)\b[^\d,;:]*\Z")
"""An indirect question before it: `how much it costs`."""
ELIDED = compile_any(
    rf"\W*(?:it |they )?{_ADVERBS}(?:{_DO_NOT}(?:{_TELL}|{_HOLD} {_FACTS})|{_SAY_NOTHING})"
    r"|\W*(?:not|only) (?:about|for|how|in|of|on|the|whether|\w+ing)\b"
)
"""`do not say`, behind a clause about documents."""
ANOTHER_LACK = rf"(?:{_DO_NOT}{_TELL}|{_SAY_NOTHING})"
"""`does not say`, behind `and`."""
HARD_TO_SAY = compile_any(
    rf"\bit(?:'s| is) (?:difficult|hard|impossible|not possible) (?:for me )?to {_ADVERBS}"
    rf"{any_of('say determine tell provide give answer know conclude')}\b",
    r"\b(?:(?:(?:an?|the) (?:\w+ )?)?answer|(?:your |the |this )?question|it|this|that) cannot be "
    rf"{any_of('answered confirmed determined established found given provided')}\b",
)
_BASIS = compile_any(
    r"\b(?:based (?:solely |only )?on|from|in|with|without|using) "
    rf"(?:{DOCUMENTS}\b|(?:\w+ ){{0,3}}information\b)"
)
"""With this beside it, it is documents that make something hard to say, not the world."""
FINITE_VERB = (
    r"(?:\d|\b"
    + any_of(
        "am are be can could did do does had has have is may might must shall should was were will would"
    )
    + r"\b)"
)
OPENERS = (
    r"(?:\W*(?:(?:with )?that said|"
    + any_of(
        "additionally again also and answer apologies but currently hello hence hi hmm however moreover my",
        "no note overall regrettably sadly sorry that therefore thus unfortunately well yes",
    )
    + r"|as such|please note|to be clear|(?:i am|i'm) (?:\w+ )?(?:sorry|afraid)|i apologi[sz]e"
    r"|it(?:'s| is) (?:also )?(?:important to note|worth (?:mentioning|noting))|it should (?:also )?be noted"
    r"|keep in mind|i regret|it (?:seems|appears)|in (?:general|addition|short|summary)"
    r"|at (?:present|(?:this|the) (?:time|moment|point))|as (?:mentioned|noted|said)"
    r"|as an? (?:\w+ ){1,3}(?:assistant|model)|the (?:\w+ )?answer (?:to [^,:]{0,60} )?is"
    r"|(?:about|according to|apart from|as far as|as for|as of|based on|beyond|concerning|for|from|if"
    r"|in terms of|other than|regarding|to|unless|when it comes to|with|without) [^,]+"
    r"(?:,[^,]+){0,3},)(?=\W|\Z))*+"
)
"""Words that may stand before what is lacking, and claim nothing."""
_HEARING = (
    rf"{OPENERS}\W*(?:(?:while|although) )?(?:(?:that)?(?:'s| is) an? \w+ question|it depends(?=\W*\Z|,)"
    r"|i understand (?:your|that you (?:want|need|would like|are (?:asking|looking)))"
    r"|i(?:'d| would) (?:love|like|be happy) to help|i wish i could (?:\w+ )?(?:answer|help|tell)"
    rf"|i (?:have )?(?:checked|searched|read|reviewed|looked (?:through|in|at)) {DOCUMENTS})\b"
)
"""`I would love to help`, `I searched the documents`: how the question was heard."""
HEARD = compile_any(_HEARING)
_OPENED = compile_any(OPENERS)
BEFORE = compile_any(rf"{OPENERS}\W*\Z", rf"{_HEARING}[^,\d]*,\W*\Z")
_DISCUSS = rf"{any_of('address cover describe discuss explain mention')}(?:e?s)?"
_LIMITED = compile_any(
    rf"{OPENERS}\W*{DOCUMENTS} (?:only|merely) {_DISCUSS}\b(?! (?:that|whether)\b)(?: [\w'-]+){{1,8}}\W*\Z",
    rf"{OPENERS}\W*{DOCUMENTS} {_DISCUSS} (?:[\w'-]+ ){{1,6}}?but not\b(?: [\w'-]+){{1,8}}\W*\Z",
)
"""`The passages only discuss frying`: they lack all else."""
_NAMED = re.compile(r"[A-Z](?<!\AI)(?<! I)|\d|@|://|www\.")


def tells_lack(clause: str) -> bool:
    """Return whether a clause says that something is not known or not told, and nothing stands before it.

    Whatever follows in the clause is what it is about.

    >>> tells_lack("Sadly, I do not know who pays"), tells_lack("It is free in May and I do not know why")
    (True, False)
    """
    lack = _LACK.search(clause)
    if lack is None and _BASIS.search(clause):
        lack = HARD_TO_SAY.search(clause)
    if lack is not None:
        return BEFORE.match(clause[: lack.start()]) is not None
    return is_untold(clause) or adds_nothing(_LIMITED, clause)


def is_untold(clause: str) -> bool:
    """Return whether a clause ends with what documents do not tell, and claims nothing before.

    >>> is_untold("The fee is not stated in the passages"), is_untold("It is new, not stated in the passages")
    (True, False)
    """
    untold = UNTOLD.search(clause)
    if untold is None:
        return False
    begun = _OPENED.match(clause)
    before = clause[begun.end() if begun else 0 : untold.start()]
    if "," in before.strip(" ,") and LIST.match(before) is None and _SUCH_AS.search(before) is None:
        return False
    return re.search(FINITE_VERB, before, re.IGNORECASE) is None or _INDIRECT.match(before) is not None


def adds_nothing(beginning: re.Pattern[str], clause: str) -> bool:
    """Return whether a clause begins like that, and has no name, number or address behind it."""
    begun = beginning.match(clause)
    return begun is not None and _NAMED.search(clause, begun.end()) is None

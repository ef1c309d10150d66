"""Full stops that end no sentence: those of abbreviations, initials and ordinal numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ALWAYS = re.compile(
    r"mr|mrs|ms|dr|prof|st|sr|jr|vs|eg|ie|e\.g|i\.e|cf|viz|approx|inc|ltd|co|corp|dept|govt|art|sec|cl|para|reg"
    r"|rs|ph|tel|ext|fig|vol|ed|pp|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|hon|adv|smt|shri|www",
    re.IGNORECASE,
)
_BEFORE_A_NUMBER = frozenset({"no", "nos", "ss", "ch"})
"""`No. 32`, but `No. That is wrong.`"""
_NOT_BEFORE_A_CAPITAL = frozenset(
    ["a.m", "p.m", "etc", "incl", "excl", "max", "min", "tbsp", "tsp", "oz", "lb", "lbs", "ph.d", "m.sc"]
)
_INITIALS = re.compile(r"(?:\(?[A-Za-z]\.)*\(?[A-Za-z]\Z")
_OF_LANGUAGES: Mapping[str, frozenset[str]] = {
    code: frozenset(words.split())
    for code, words in {
        "ar": "د أ ص م",
        "bn": "ড ডা মো টা নং",
        "ca": "av c núm pàg sr sra tel aprox màx mín",
        "cs": "např tzv tj tzn č čl odst str ul nám ing mgr cca max min resp",
        "da": "ca nr bl.a f.eks jf kap tlf stk kl evt inkl ekskl maks min pr",
        "de": "abb abs bd bsp bzgl bzw ca dgl dipl evtl exkl fa fr ggf hr hrsg inkl ing lt max mind min mio "
        "mrd nr sog str tab tsd ust vgl zzgl gem geb",
        "el": "π.χ κ κα κος δηλ αρ αριθ βλ σελ τηλ περ",
        "es": "sra srta sres dra ud uds vd dña av avda núm pág págs párr arts cap aprox máx mín ej",
        "fa": "ص",
        "fi": "esim ks nro puh",
        "fr": "m mm mme mmes mlle me av bd al env ex réf tél chap éd ste max min",
        "hi": "रु डॉ प्रो श्री क्र सं पृ",
        "hr": "npr tj ul br str čl",
        "hu": "kb pl ifj id",
        "id": "jl jln no rp bpk gg hlm",
        "it": "sig sigg sig.ra dott dott.ssa ing avv artt n nn pag pagg cap ca cfr es max min",
        "ko": "",
        "nl": "bijv bv ca dhr mevr mw drs ir nr blz max incl excl evt resp",
        "no": "ca nr bl.a f.eks jf kap tlf stk kl evt inkl ekskl maks min pr",
        "pl": "np tj tzn tzw ok godz ul al pl os nr ust pkt poz str zob por mgr inż im św wg min maks ds",
        "pt": "sra srs dra profa av núm pág págs arts cap aprox máx mín ex",
        "ro": "nr str dl dna alin pct ex",
        "ru": "ул вул буд пр просп пер кв корп стр гг им пп ст рис табл см ср напр тел",
        "sv": "ca nr bl.a t.ex jfr kap kl ev inkl exkl max min",
        "sw": "sh tsh ksh bw bi mh dkt",
        "ta": "ரூ திரு எண்",
        "te": "రూ డా శ్రీ",
        "tr": "bkz md no nr sn doç av sk cad mah apt örn",
        "uk": "вул просп пров буд кв корп стор рр ім пп ст рис див напр тел",
        "ur": "ڈاکٹر ص",
        "vi": "tp q p đ ts ths gs pgs bs ks",
    }.items()
    if words
}
"""Language → abbreviations before names and numbers, in small letters. Those at the end of a clause (`usw.`,
`ecc.`) and units (`руб.`) are none: no small letter follows them where they end a sentence."""
_GERMAN_AFTER_AN_ORDINAL = re.compile(
    r"(?:Jan|Feb|März|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)\w{0,6}\b|Etage|Stock|OG\b|Obergeschoss|Klasse|Auflage"
    r"|Jahrhundert|Quartal|Halbjahr|Mal\b|Tag\b|Woche|Monat|Jahr\b|Platz|Geburtstag"
)


def is_abbreviation(word: str, following: str, language: str | None = None) -> bool:
    """Return whether the full stop after `word` belongs to an abbreviation, so that no sentence ends.

    >>> is_abbreviation("Dr", "Rao"), is_abbreviation("bzw", "Frau", "de"), is_abbreviation("1", "Mai", "de")
    (True, True, True)

    Args:
        word: the characters between white space and the stop; brackets and quotation marks before it are
            ignored.
        following: the text after the stop, without white space before it; a word of it is enough.
        language: its code; None: as in English. In other languages, a sentence does not begin with a small
            letter.
    """
    word = word.lstrip("(\"'“‘*_[„«‚¿¡")
    if language not in (None, "en"):
        lower = word.lower()
        if following[:1].islower() or lower in _OF_LANGUAGES.get(language, ()):
            return True
        if len(word) == 1 and word.isalpha():
            return True  # `т. Е.`, an initial in any script
        is_ordinal = word.isdecimal() and len(word) < 3 and _GERMAN_AFTER_AN_ORDINAL.match(following)
        if language == "de" and (lower.endswith("str") or is_ordinal):
            return True
    if word.lower() in _BEFORE_A_NUMBER:
        return following[:1].isdigit()
    if word.lower() in _NOT_BEFORE_A_CAPITAL:
        return not following[:1].isupper()
    return _ALWAYS.fullmatch(word) is not None or (_INITIALS.fullmatch(word) is not None and word != "I")

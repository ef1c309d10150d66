"""Languages: which one a text is in, told by its script, and in Latin script by its smallest words.

No model and no network: a rule that a reader can follow. It is meant to call a text English rather than to
doubt it, because English is what most detectors were made for. Languages that share a script other than Latin
count as the one that most people write, so Marathi counts as Hindi.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache

from hallulab.scenarios.text.words import STOP_WORDS

ENGLISH = "en"
UNKNOWN = "und"
"""Code of a language in a script that is not in `_SCRIPTS`."""

NAMES: Mapping[str, str] = {
    "am": "Amharic", "ar": "Arabic", "bn": "Bengali", "bo": "Tibetan", "ca": "Catalan", "cs": "Czech",
    "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ka": "Georgian", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "lo": "Lao", "ml": "Malayalam",
    "my": "Burmese", "nl": "Dutch", "no": "Norwegian", "or": "Odia", "pa": "Punjabi", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "und": "an unknown language", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Code (ISO 639-1) → name in English."""

_SCRIPTS: Mapping[str, str] = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CJK": "zh", "CYRILLIC": "ru", "DEVANAGARI": "hi",
    "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko",
    "HEBREW": "he", "HIRAGANA": "ja", "KANNADA": "kn", "KATAKANA": "ja", "KHMER": "km", "LAO": "lo",
    "LATIN": "en", "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si", "TAMIL": "ta",
    "TELUGU": "te", "THAI": "th", "TIBETAN": "bo",
}  # fmt: skip
"""Script, by the first word of its letters' names in Unicode → the language that most people write in it."""
_LETTERS_OF: Mapping[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "ar": (("ur", re.compile("[ٹڈڑںے]")), ("fa", re.compile("[پچژگ]"))),
    "ru": (("uk", re.compile("[іїєґ]", re.IGNORECASE)),),
}
"""Languages told from the one of their script by letters of their own."""
_SMALL_WORDS: Mapping[str, str] = {
    "ca": "amb que els les una del per més són és aquest aquesta llibre o hi ha pot cada sense",
    "cs": "je se na že jsou pro který která které nebo od za při není může být jako po až také každý",
    "da": "og i en et det er af til på den der som ikke har kan eller ved bliver efter hver vil skal blive",
    "de": "der die das in an am war so man und ist ein eine einen einem einer den dem des nicht mit von zu für auf im sich wird "
    "werden beim zum zur oder sind bei nach aus kann wie auch es sie ich wir ihr pro je bis beträgt kostet "
    "haben nur über alle jeder jede jedes wenn",
    "es": "el la de no me a los las una y que del con por para es se su sus al lo como más pero son está cada cuesta puede "
    "sin hasta un días año",
    "fi": "ja on ei se että ovat myös tai kun joka mutta voi vain niin sen kuin ole jos jälkeen",
    "fr": "le la de on a me si les des une et est du que qui pour dans sur pas par au aux avec ce il elle sont son sa ses ou "
    "chaque vous nous votre coûte sans la un en peut être jours",
    "hr": "je se na da su za od koji koja koje ili nije kao po može biti ako svaki bez",
    "hu": "az és hogy nem egy van vagy meg csak ez ki minden után lehet kell nap ha aki",
    "id": "yang di dan di dari untuk dengan ini itu tidak adalah pada ke dalam akan oleh atau setiap anda dapat "
    "bisa harus hari buku jika biaya",
    "it": "il lo gli la le i in a che una per con del della dei delle è sono nel nella da al alla ogni può si non di un e "
    "senza costa più questo giorni",
    "nl": "het de in is een van en is dat op te zijn met voor niet aan er ook als bij wordt naar uit per kan worden "
    "kost of deze elke u maar dagen na",
    "no": "og i en et det er av til på den som ikke har kan eller ved blir etter hver vil skal bli fra hvis",
    "pl": "się na nie jest że do z w i po za od lub jak są który która które przez dla każdy można dni przy",
    "pt": "o os as de a me uma que do da dos das com por para é se não em no na ao um ou são cada pode mais custa sem "
    "até seu sua dias e você",
    "ro": "și este în de la cu un pe nu o care sau din pentru se sunt fi poate fiecare fără după zile",
    "sv": "och i en det är av till på den som inte har kan eller vid blir efter varje ska en ett för att om med",
    "sw": "ya wa na kwa ni za la katika kila kama au hii hiyo siku baada bila cha vya watu",
    "tr": "ve bir bu için ile da de çok en her olarak değil daha ne kadar veya sonra olan gün ise",
    "vi": "và là của có không được cho trong một các với những này khi để phải mỗi ngày sẽ hoặc từ đến",
}  # fmt: skip
"""Code → words that are common in the language. Words that English has, too, speak for neither."""
_FEWEST = 2
"""Different small words by which a text in the letters of ASCII is not called English; else one is enough."""
_SPARSEST = 15
"""One of so many different words is a small one at least: a table of sports results is in no language."""
_READ = 800
"""Characters of a text that are looked at: a language shows in its beginning."""
_LETTERS = re.compile(r"[^\W\d_]+")
_WHOLE_WORD = re.compile(r"\b[^\W\d_]+\b")
_ADDRESS = re.compile(r"https?://\S+")
WITHOUT_SPACES = frozenset({"bo", "ja", "km", "lo", "my", "th", "zh"})
"""Languages that put no spaces between words."""


def identify_language(text: str) -> str | None:
    """Return the code of the language that most of a text is written in; None: its few words do not tell.

    >>> [identify_language(text) for text in ("Die Karte ist für alle da.", "It is free.", "पुस्तक", "Rs 500.")]
    ['de', 'en', 'hi', None]
    """
    return next(iter(list_likely_languages(text)), None)


def list_likely_languages(text: str) -> tuple[str, ...]:
    """Return the codes of the languages that a text may be in: several if its words speak for each alike.

    That with most words of its own is first.

    >>> list_likely_languages("Wiertarka kosztuje 4 zł za dzień.")
    ('cs', 'hr', 'pl', 'sw')
    """
    return _identify(text[:_READ])


@lru_cache(maxsize=4096)
def _identify(text: str) -> tuple[str, ...]:
    if not text.isascii():
        language = _find_main_script(text)
        if language not in (None, "en"):
            return (language,)
    found = set(_WHOLE_WORD.findall(text.lower()))
    english = len(found & _list_english_words())
    owners = [_list_small_words()[word] for word in found & _list_small_words().keys()]
    votes = Counter(code for codes in owners for code in codes)
    alone = Counter(code for codes in owners for code in codes if len(codes) == 1)
    most = max(votes.values(), default=0)
    common = most >= _FEWEST or not text.isascii()
    if common and most > english and most * _SPARSEST >= len(found):
        likely = (code for code, number in votes.items() if number == most)
        return tuple(sorted(likely, key=lambda code: (-alone[code], code)))
    return ("en",) if english else ()


def name_language(code: str) -> str:
    """Return the English name of a language, or its code.

    >>> name_language("hi"), name_language("yo")
    ('Hindi', 'yo')
    """
    return NAMES.get(code, code)


def are_written_alike(one: str, other: str) -> bool:
    """Return whether words of two languages can be compared: they are the same, or share a script but Latin.

    Few words may not tell Persian from Arabic, or Chinese from Japanese.

    >>> are_written_alike("fa", "ar"), are_written_alike("de", "en"), are_written_alike("zh", "ja")
    (True, False, True)
    """
    groups = ({"ar", "fa", "ur"}, {"ru", "uk"}, {"zh", "ja"})
    return one == other or any({one, other} <= group for group in groups)


@cache
def _list_small_words() -> Mapping[str, tuple[str, ...]]:
    """Return word → the languages in which it is common."""
    owners: dict[str, list[str]] = {}
    for code, words in _SMALL_WORDS.items():
        for word in dict.fromkeys(words.split()):
            owners.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in owners.items() if word not in STOP_WORDS}


@cache
def _list_english_words() -> frozenset[str]:
    """Return the small words that English shares with none of the others."""
    return STOP_WORDS - {word for words in _SMALL_WORDS.values() for word in words.split()}


def _find_main_script(text: str) -> str | None:
    """Return the language of the script with most words; `en` stands for Latin, None: there are no letters.

    Without spaces, two characters count as a word.
    """
    words: Counter[str] = Counter()
    for run in _LETTERS.findall(_ADDRESS.sub(" ", text)):
        for sign in run if _name_script(run[0]) in WITHOUT_SPACES else run[0]:
            language = _name_script(sign)
            words[language] += 1 if language in WITHOUT_SPACES else 2
    if words["ja"] * 10 >= words["zh"] and words["ja"]:
        return "ja" if words["ja"] + words["zh"] >= max(words.values()) else max(words, key=words.__getitem__)
    if not words:
        return None
    main = max(words, key=words.__getitem__)
    return next((code for code, own in _LETTERS_OF.get(main, ()) if own.search(text)), main)


@lru_cache(maxsize=8192)
def _name_script(letter: str) -> str:
    """Return the language that stands for a letter's script."""
    if letter <= "ɏ":
        return "en"
    return _SCRIPTS.get(unicodedata.name(letter, "").split(" ")[0], UNKNOWN)

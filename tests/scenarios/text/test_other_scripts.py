"""Words and sentences of scripts that do not write them as English does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.chunking import Chunking, split_into_chunks
from hallulab.scenarios.text.numbers import list_word_values
from hallulab.scenarios.text.scripts import split_by_unicode
from hallulab.scenarios.text.spans import split_sentences, split_words
from hallulab.scenarios.text.words import TOKEN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("पुस्तक खोने पर २० पैसे।", ["पुस्तक", "खोने", "पर", "२०", "पैसे"]),
        ("தொலைந்த புத்தகம்", ["தொலைந்த", "புத்தகம்"]),
        ("كم يكلف التأخير؟", ["كم", "يكلف", "التأخير"]),
        ("图书馆20天,免费", ["图", "书", "馆", "20", "天", "免", "费"]),
        ("カードは無料", ["カード", "は", "無", "料"]),
        ("บัตรฟรี 20 บาท", ["บัตร", "ฟรี", "20", "บาท"]),
        ("Don't pay 3.5% to Müller", ["don", "t", "pay", "3", "5", "to", "müller"]),
    ],
)
def test_words_are_whole(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("कार्ड मुफ़्त है। देर पर २० पैसे लगते हैं।", ["कार्ड मुफ़्त है।", "देर पर २० पैसे लगते हैं।"]),
        ("कार्ड मुफ़्त है।देर पर दंड है।", ["कार्ड मुफ़्त है।", "देर पर दंड है।"]),
        ("借书证免费。逾期收费！真的吗？是的", ["借书证免费。", "逾期收费！", "真的吗？", "是的"]),
        ("借书证免费.逾期收费!真的", ["借书证免费.", "逾期收费!", "真的"]),
        ("「無料です。」二日です。", ["「無料です。」", "二日です。"]),
        ("كم الثمن؟البطاقة مجانية.", ["كم الثمن؟", "البطاقة مجانية."]),
        ("کارڈ مفت ہے۔ دیر پر جرمانہ ہے۔", ["کارڈ مفت ہے۔", "دیر پر جرمانہ ہے۔"]),
        ("价格为3.5元", ["价格为3.5元"]),
        ("See 図書館.Then go", ["See 図書館.Then go"]),
    ],
)
def test_sentences_end_at_the_marks_of_their_script(text: str, sentences: list[str]) -> None:
    assert [region.of(text) for region in split_sentences(text)] == sentences


def test_tokens_keep_vowel_signs_with_their_letters() -> None:
    assert TOKEN.findall("हिन्दी کتاب‌ها e\u0301te\u0301") == ["हिन्दी", "کتاب‌ها", "e\u0301te\u0301"]


def test_a_chunk_ends_at_the_question_mark_of_arabic() -> None:
    text = "كم يكلف كل يوم؟ كل يوم يكلف عشرين سنتا."
    assert split_into_chunks(text, Chunking(max_words=6, min_words=1)) == (
        "كم يكلف كل يوم؟",
        "كل يوم يكلف عشرين سنتا.",
    )


@pytest.mark.parametrize(
    ("text", "language", "values"),
    [
        ("1.250,50 €", "de", ["1250.5"]),
        ("1\u202f250,50 €", "fr", ["1250.5"]),
        ("1,250.50 रुपये १२५०.५", "hi", ["1250.5", "रुपये", "1250.5"]),
        ("٢٫٥ و ١٬٠٠٠", "ar", ["2.5", "و", "1000"]),
        ("کتاب ۲۰", "fa", ["کتاب", "20"]),
        ("三百六十元 360元", "zh", ["360", "元", "360", "元"]),
        ("万一", "zh", ["万", "一"]),
        ("３．５％", "ja", ["3.5"]),
        ("Straße STRASSE", "de", ["strasse", "strasse"]),
        ("U\u0308bung Übung", "de", ["übung", "übung"]),
        ("مُدِيـر مدير", "ar", ["مدير", "مدير"]),
        ("The fee is 3.5 %", "en", ["the", "fee", "is", "3", "5"]),
    ],
)
def test_words_are_compared_by_their_values(text: str, language: str, values: list[str]) -> None:
    assert list_word_values(text, language) == values


@given(st.text())
def test_every_letter_and_digit_is_in_a_word(text: str) -> None:
    words = "".join(split_by_unicode(text))
    assert all(sign in words for sign in text if sign.isdecimal())


@given(st.text(st.characters(max_codepoint=0x24F)))
def test_words_of_latin_text_are_what_they_were(text: str) -> None:
    import re

    if "\u00ad" not in text and "-\n" not in text:
        assert split_words(text) == re.findall(r"\w+", text.lower())

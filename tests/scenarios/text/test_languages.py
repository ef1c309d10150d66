"""Which language a text is in."""

from __future__ import annotations

import pytest

from hallulab.scenarios.text.languages import identify_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Each late item costs 20 cents a day.", "en"),
        ("Ask for Die Zeit, der Spiegel and the Guardian at the desk.", "en"),
        ("The café “Zur Post” is open.", "en"),
        ("Die Gebühr beträgt 3,5 Prozent des Preises.", "de"),
        ("Die Raeder sind fuer einen Tag.", "de"),
        ("La carte est gratuite pour les résidents.", "fr"),
        ("Je vous invite à payer 5 euros.", "fr"),  # je is as common in other languages
        ("Cada día de retraso cuesta 20 céntimos.", "es"),
        ("Cada dia de atraso não é grátis.", "pt"),
        ("I libri sono per tutti e la carta non costa nulla.", "it"),
        ("De kaart is gratis voor iedereen en het boek ook.", "nl"),
        ("Her gün için 20 kuruş ceza var.", "tr"),
        ("Thẻ là miễn phí cho cư dân.", "vi"),
        ("Карта бесплатна.", "ru"),
        ("Картка безкоштовна для мешканців.", "uk"),
        ("देर होने पर प्रतिदिन बीस पैसे लगते हैं।", "hi"),
        ("அட்டை இலவசம்.", "ta"),
        ("البطاقة مجانية.", "ar"),
        ("کارت رایگان است و گران نیست", "fa"),
        ("کارڈ مفت ہے۔", "ur"),
        ("借书证免费。", "zh"),
        ("図書館は無料です。", "ja"),
        ("카드는 무료입니다.", "ko"),
        ("บัตรฟรี", "th"),
        ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ", "und"),
        ("看 https://example.org/library/cards/prices", "zh"),
        ("The word 图书 means book, and the library has 20 of them.", "en"),
        ("Rs 500.", None),
        ("a1b2c3d4-e5f6", None),
        ("", None),
    ],
)
def test_script_and_small_words_tell_the_language(text: str, language: str | None) -> None:
    assert identify_language(text) == language

"""In further languages, too, `lexical` scores wrong twins higher and flags no right one."""

from __future__ import annotations

import pytest

from hallulab.detectors.base.protocol import DetectorContext, run_detector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import scripted_pool

FACTS = [
    (
        "Wypożyczenie wiertarki kosztuje {} zł za dzień.",
        "Kasę prowadzi pani {}.",
        "4,50",
        "Kowalska",
        "Nowak",
    ),
    ("Půjčení vrtačky stojí {} eura za den.", "Pokladnu vede paní {}.", "4,50", "Nováková", "Dvořáková"),
    (
        "A fúró kölcsönzése napi {} euró, és csak hétfőn.",
        "A pénztárt {} Anna vezeti.",
        "4,50",
        "Nagy",
        "Szabó",
    ),
    ("El taladro cuesta {} euros al día.", "La caja la lleva la señora {}.", "4,50", "Gómez", "Pérez"),
    (
        "La caution est de {} euros pour un an.",
        "La caisse est tenue par Mme {}.",
        "1 250",
        "Dupont",
        "Lefèvre",
    ),
    ("Matkap bir gün için {} liradır.", "Kasaya {} Yılmaz bakar.", "4,50", "Ayşe", "Fatma"),
    ("Прокат дриля коштує {} євро на день.", "Касу веде Олена {}.", "4,50", "Коваль", "Бондар"),
    ("드릴 대여료는 하루에 {}유로입니다.", "회계는 {} 씨가 맡고 있습니다.", "4.5", "김민지", "박서연"),
    ("Phí mượn máy khoan là {}đ mỗi ngày.", "Bà {} giữ quỹ và mở cửa.", "5.000", "Lan", "Hoa"),
    ("ড্রিলের ভাড়া দিনে {} টাকা।", "হিসাব রাখেন {} সেন।", "৪৫০", "রিনা", "মিতা"),
    ("கருவியின் வாடகை நாளுக்கு {} ரூபாய்.", "கணக்கை {} வைத்திருக்கிறார்.", "450", "கமலா", "விமலா"),
    ("کرایهٔ دریل روزی {} تومان است.", "صندوق را {} رضایی نگه می‌دارد.", "۴۵۰", "مریم", "زهرا"),
    ("השאלת מקדחה עולה {} אירו ליום.", "את הקופה מנהלת דנה {}.", "4.50", "לוי", "כהן"),
    ("Το τρυπάνι κοστίζει {} ευρώ την ημέρα.", "Το ταμείο κρατά η κυρία {}.", "4,50", "Παππά", "Νίκου"),
    ("Ada ya kuazima drili ni shilingi {} kwa siku.", "Bi {} anatunza fedha.", "450", "Amina", "Zuhura"),
]


@pytest.mark.parametrize("facts", FACTS, ids=lambda facts: facts[0].split()[0])
async def test_lexical_tells_the_twins_apart(facts: tuple[str, str, str, str, str]) -> None:
    fee, keeper, number, name, other = facts
    document = f"{fee.format(number)} {keeper.format(name)}"
    replies = [
        f"{keeper.format(name)} {fee.format(number)}",
        f"{keeper.format(name)} {fee.format(797)}",
        f"{keeper.format(other)} {fee.format(number)}",
    ]
    pool, _ = scripted_pool(lambda _: "unused")
    detector = make_detector("lexical", "lexical", DetectorContext(models=pool))
    passages = (Passage(id="house#0", document="house", text=document),)
    judged = await run_detector(
        detector, [TurnView(question="?", passages=passages, reply=reply) for reply in replies]
    )
    right, *wrong = [one.score for one in judged if one.score is not None]
    assert (right, judged[0].flagged, len(wrong)) == (0.0, False, 2)
    assert min(wrong) > 0.0

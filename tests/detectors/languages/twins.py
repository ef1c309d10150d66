"""Right and wrong replies in six languages: the same two facts, with one number or one name changed.

The right ones say what the document says in other words or another order where the language allows it.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView


class Twins(NamedTuple):
    """A document, a question, and three replies to it."""

    language: str
    document: str
    question: str
    right: str
    wrong_number: str
    wrong_name: str

    def view(self, reply: str) -> TurnView:
        """Return what a detector sees of one of the replies."""
        passage = Passage(id="house#0", document="house", text=self.document)
        return TurnView(question=self.question, passages=(passage,), reply=reply)


TWINS = (
    Twins(
        "de",
        "Die Werkstatt in der Schloßstraße vermietet Lastenräder. Ein Rad kostet 12,50 Euro am Tag, die "
        "Kaution beträgt 1.250,50 Euro. Frau Öztürk nimmt die Räder bis 18 Uhr zurück. Kinder unter 8 Jahren "
        "fahren kostenlos mit.",
        "Was kostet ein Lastenrad?",
        "Ein Rad kostet 12,50 Euro am Tag, die Kaution beträgt 1250,50 Euro. Frau Öztürk nimmt die Räder zurück.",
        "Ein Rad kostet 125,0 Euro am Tag, die Kaution beträgt 1250,50 Euro. Frau Öztürk nimmt die Räder zurück.",
        "Ein Rad kostet 12,50 Euro am Tag, die Kaution beträgt 1250,50 Euro. Frau Schäfer nimmt die Räder zurück.",
    ),
    Twins(
        "de",
        unicodedata.normalize(
            "NFD",
            "Über Gebühren entscheidet der Ausschuss. Die Jahresgebühr für Gärten über 300 Quadratmeter beträgt "
            "3,5 Prozent des Bodenwerts. Anträge nimmt Jörg Weiß in Köln bis zum 15. März entgegen.",
        ),
        "Wie hoch ist die Gebühr?",
        "Die Jahresgebühr beträgt 3,5 Prozent des Bodenwerts. Jörg Weiß nimmt Anträge bis zum 15. März entgegen.",
        "Die Jahresgebühr beträgt 35 Prozent des Bodenwerts. Jörg Weiß nimmt Anträge bis zum 15. März entgegen.",
        "Die Jahresgebühr beträgt 3,5 Prozent des Bodenwerts. Jürgen Weiß nimmt Anträge bis zum 15. März entgegen.",
    ),
    Twins(
        "hi",
        "मोहल्ले की साइकिल दुकान सोमवार को बंद रहती है। साइकिल का किराया प्रतिदिन १२०.५० रुपये है और जमानत 1,500 रुपये है। "
        "मरम्मत सुनीता शर्मा करती हैं। हेलमेट मुफ़्त मिलता है।",
        "साइकिल का किराया कितना है?",
        "साइकिल का किराया प्रतिदिन 120.5 रुपये है। मरम्मत सुनीता शर्मा करती हैं।",
        "साइकिल का किराया प्रतिदिन 220.5 रुपये है। मरम्मत सुनीता शर्मा करती हैं।",
        "साइकिल का किराया प्रतिदिन 120.5 रुपये है। मरम्मत कविता शर्मा करती हैं।",
    ),
    Twins(
        "hi",
        "बस पास के लिए आवेदन क्षेत्रीय कार्यालय में दें। विद्यार्थियों को पास पर ४० प्रतिशत छूट मिलती है। पास खोने पर २५० रुपये लगते हैं।"
        " शिकायत अधिकारी का नाम राजेश वर्मा है।",
        "छूट कितनी है?",
        "विद्यार्थियों को पास पर 40 प्रतिशत छूट मिलती है। शिकायत अधिकारी राजेश वर्मा है।",
        "विद्यार्थियों को पास पर 60 प्रतिशत छूट मिलती है। शिकायत अधिकारी राजेश वर्मा है।",
        "विद्यार्थियों को पास पर 40 प्रतिशत छूट मिलती है। शिकायत अधिकारी महेश वर्मा है।",
    ),
    Twins(
        "ar",
        "يفتح المسبح البلدي أبوابه من السبت إلى الأربعاء. ثمن التذكرة ١٥ درهماً للكبار و٧ دراهم للأطفال. "
        "تدير المسبح السيدة ليلى حداد. هل يُسمح بالطعام؟ لا، إلا في الحديقة.",
        "كم ثمن التذكرة؟",
        "ثمن التذكرة 15 درهماً للكبار. تدير المسبح السيدة ليلى حداد.",
        "ثمن التذكرة 45 درهماً للكبار. تدير المسبح السيدة ليلى حداد.",
        "ثمن التذكرة 15 درهماً للكبار. تدير المسبح السيدة سعاد حداد.",
    ),
    Twins(
        "ar",
        "تُرسل الطلبات خلال ٣٠ يوماً من تاريخ الشراء. رسوم الإرجاع ٢٫٥ في المئة من السعر. يستلم كريم منصور الطلبات في مكتب الميناء.",
        "متى تُرسل الطلبات؟",
        "تُرسل الطلبات خلال 30 يوماً من تاريخ الشراء، ورسوم الإرجاع 2.5 في المئة. يستلم كريم منصور الطلبات.",
        "تُرسل الطلبات خلال 30 يوماً من تاريخ الشراء، ورسوم الإرجاع 25 في المئة. يستلم كريم منصور الطلبات.",
        "تُرسل الطلبات خلال 30 يوماً من تاريخ الشراء، ورسوم الإرجاع 2.5 في المئة. يستلم فريد منصور الطلبات.",
    ),
    Twins(
        "zh",
        "社区菜园的地块每年租金为三百六十元,押金一百元。浇水时间是早上6点到8点。地块由王建国分配。冬天菜园关闭。",
        "租金是多少?",
        "地块每年租金为360元。地块由王建国分配。",
        "地块每年租金为630元。地块由王建国分配。",
        "地块每年租金为360元。地块由李建国分配。",
    ),
    Twins(
        "zh",
        "游泳馆周一闭馆。成人票每张25元,儿童票每张12.5元。遗失储物柜钥匙须赔偿五十元。馆长是陈晓梅,电话由前台转接。",
        "儿童票多少钱?",
        "儿童票每张12.50元。遗失钥匙赔偿50元。馆长是陈晓梅。",
        "儿童票每张125元。遗失钥匙赔偿50元。馆长是陈晓梅。",
        "儿童票每张12.50元。遗失钥匙赔偿50元。馆长是赵晓梅。",
    ),
    Twins(
        "ja",
        "自転車の貸し出しは1日800円です。保証金は三千円で、返却のときに戻ります。受付は午前9時からです。修理は佐藤さんが担当します。",
        "貸し出しはいくらですか。",
        "貸し出しは１日８００円です。保証金は3000円です。修理は佐藤さんが担当します。",
        "貸し出しは１日９００円です。保証金は3000円です。修理は佐藤さんが担当します。",
        "貸し出しは１日８００円です。保証金は3000円です。修理は高橋さんが担当します。",
    ),
    Twins(
        "ja",
        "温室の見学は毎月第2日曜日に行います。定員は24人で、参加費は1人1,500円です。案内はカルロスさんがします。雨の日も行います。",
        "定員は何人ですか。",
        "定員は24人で、参加費は1,500円です。案内はカルロスさんがします。",
        "定員は42人で、参加費は1,500円です。案内はカルロスさんがします。",
        "定員は24人で、参加費は1,500円です。案内はロベルトさんがします。",
    ),
    Twins(
        "th",
        "ร้านจักรยานเปิดทุกวันยกเว้นวันจันทร์ ค่าเช่าจักรยานวันละ ๑๒๐ บาท ค่ามัดจำ 1,500 บาท คุณสมชายเป็นช่างซ่อม เด็กต้องสวมหมวกนิรภัย",
        "ค่าเช่าเท่าไร",
        "ค่าเช่าจักรยานวันละ 120 บาท คุณสมชายเป็นช่างซ่อม",
        "ค่าเช่าจักรยานวันละ 250 บาท คุณสมชายเป็นช่างซ่อม",
        "ค่าเช่าจักรยานวันละ 120 บาท คุณวิชัยเป็นช่างซ่อม",
    ),
    Twins(
        "th",
        "สระว่ายน้ำปิดทำความสะอาดทุกวันพุธ บัตรผู้ใหญ่ราคา 60 บาท บัตรเด็กราคา 25 บาท ถ้าทำกุญแจตู้หายต้องจ่าย 200 บาท ผู้จัดการชื่อมาลี",
        "บัตรเด็กราคาเท่าไร",
        "บัตรเด็กราคา ๒๕ บาท ผู้จัดการชื่อมาลี",
        "บัตรเด็กราคา ๓๕ บาท ผู้จัดการชื่อมาลี",
        "บัตรเด็กราคา ๒๕ บาท ผู้จัดการชื่อดวงใจ",
    ),
)
"""Two documents a language, invented for these tests."""

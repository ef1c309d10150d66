"""Replies in other languages than English that decline or ask back, told by a few patterns for each.

They know less than those for English (`hallulab.scenarios.text.declining`): a sentence declines if each of
its clauses is a refusal, an apology, or says whom to ask, without a number or an address. A refusal in other
words counts as an answer, which detectors then judge.

Every pattern looks at a bounded stretch from wherever it begins, so that its time grows with the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Literal

ForeignKind = Literal["answers", "declines", "asks back", "courtesy"]


@dataclass(frozen=True)
class Refusals:
    """Patterns of a language; case aside, and without the short vowels of Arabic."""

    lacks: str
    """A refusal: whatever follows in the clause is what it is about."""
    claims: str
    """Words of a claim, which may not stand before a refusal."""
    excuses: str
    """Apologies, thanks, greetings, and words that lead to a refusal."""
    points: str
    """The beginning of a clause that says whom to ask, or its end."""
    asks: str
    """A question to the user, or a request to tell something."""
    offers: str
    """Words of a question that only offers help."""
    joints: str = r"(?!)"
    """Conjunctions behind which something may be claimed."""
    about: str = r""
    """The beginning of what follows a refusal if only that may hold `claims`; empty: anything may."""
    goes_on: str = r"(?!)"
    """The beginning of a clause that only says what is not known."""


_DE_TEXTS = (
    r"(?:dokumente?n?|unterlagen|texte?n?|quellen?|passagen?|textstellen?|auszügen?|kontext"
    r"|wissensdatenbank)"
)
_DE_FACTS = r"(?:informationen?|angaben?|daten|auskunft|hinweise?|antwort|zugriff|einzelheiten)"
_ES_TEXTS = (
    r"(?:documentos?|textos?|fuentes?|pasajes?|fragmentos?|contexto|base de conocimientos?"
    r"|información (?:proporcionada|disponible))"
)
_ES_FACTS = r"(?:información|datos|detalles|acceso|respuesta|mención|nada)"
_FR_TEXTS = (
    r"(?:documents?|textes?|sources?|passages?|extraits?|contexte|base de connaissances"
    r"|informations? (?:fournies?|disponibles?))"
)
_FR_FACTS = r"(?:informations?|données?|accès|réponse|détails?|précisions?|mention|rien)"
_HI_TEXTS = r"(?:दस्तावेज़ों|दस्तावेजों|दस्तावेज़|दस्तावेज|स्रोतों|पाठ|संदर्भ|अंशों|सामग्री)"
_HI_FACTS = r"(?:जानकारी|उत्तर|जवाब|विवरण|सूचना|उल्लेख|ज़िक्र|जिक्र)"
_HI_FORMS = (
    r"(?: (?:है|हैं|था|थी|थे|मिल\S{0,4}|दिया|दी|दिए|दे|पा|किया|की|गया|गई|गए|हो|हुआ|हुई|रहा|रही|सका|सकी"
    r"|सकता|सकती"
    r"|सकते|हूँ|हूं))*+"
)
_AR_TEXTS = r"(?:الوثائق|المستندات|النصوص|المصادر|الفقرات|المقاطع|السياق)"
_AR_FACTS = r"(?:معلومات|المعلومات|معلومة|المعلومة|بيانات|إجابة|تفاصيل|إشارة|ذكر)"
_ZH_TEXTS = r"(?:文件|文档|资料|材料|段落|文本|上下文|知识库|来源)"
_ZH_FACTS = r"(?:信息|资料|数据|说明|内容|答案|细节|记录)"
_ZH_BEFORE = (
    rf"\A(?:目前|暂时|因此|所以|对此|我们?|这里|根据\S{{0,10}}?(?:{_ZH_TEXTS}|信息)|很|也|还|并){{0,4}}"
)
_JA_TEXTS = r"(?:資料|文書|ドキュメント|文章|情報源|コンテキスト|提供された情報|本文)"
_JA_FACTS = r"(?:情報|記載|記述|データ|言及|回答|答え)"
_JA_NOT = r"(?:ません|りません|ない)(?:でした)?"
_TH_TEXTS = r"(?:เอกสาร|ข้อความ|แหล่งข้อมูล|ข้อมูลที่ให้มา|ข้อมูลที่มี|บริบท|เนื้อหา)"

REFUSALS: Mapping[str, Refusals] = {
    "de": Refusals(
        lacks=rf"\b(?:ich|wir) (?:weiß|wissen)\b(?: \S+){{0,3}}? nicht\b|\bweiß ich (?:\w+ )?nicht\b"
        r"|\b(?:kann|konnte|können|konnten) (?:ich|wir|man) (?:\S+ ){0,6}?(?:nicht|nichts|keine?n?)\b"
        r"(?: \S+){0,6}? (?:beantworten|finden|sagen|(?:weiter)?helfen|beurteilen|bestätigen|nennen"
        r"|entnehmen)\b"
        r"|\bich (?:kann|konnte) (?:\S+ ){0,6}?(?:nicht|nichts|keine?n?)\b"
        r"(?: \S+){0,6}? (?:beantworten|finden|sagen|(?:weiter)?helfen|beurteilen|bestätigen|nennen"
        r"|entnehmen)\b"
        rf"|\b(?:ich habe|habe ich|wir haben|haben wir|mir liegen|liegen mir) (?:\S+ ){{0,4}}?keine?n? "
        rf"(?:\w+ ){{0,2}}{_DE_FACTS}"
        rf"|\b(?:die|der|das|den|dem|diese\w?|meine\w?) (?:\w+ )?{_DE_TEXTS} (?:\w+ )?(?:nenn|erwähn|sag"
        rf"|beantwort)\w*"
        r" (?:\w+ ){0,5}?(?:nicht|nichts|keine?n?)\b"
        rf"|\b(?:die|der|das|den|dem|diese\w?|meine\w?) (?:\w+ )?{_DE_TEXTS} (?:\w+ )?(?:enth[aä]lt\w*"
        rf"|gib\w*|geben"
        rf"|machen|macht|liefer\w*) (?:\w+ ){{0,5}}?(?:keine?n? (?:\w+ )?{_DE_FACTS}|nichts)"
        rf"|\b(?:steht|stehen|wird|werden|ist|sind|geht|findet|finden|gibt es) (?:\S+ ){{0,6}}?"
        rf"(?:nicht|nichts|keine?n? {_DE_FACTS})\b(?: \S+){{0,4}}? (?:in|aus) (?:\w+ ){{1,2}}{_DE_TEXTS}"
        rf"|\b(?:in|aus) (?:\w+ ){{1,2}}{_DE_TEXTS} (?:steht|wird|geht|ist|gibt es"
        rf"|finde ich) (?:\S+ ){{0,5}}?"
        rf"(?:nicht|nichts|keine?n? {_DE_FACTS})\b"
        rf"|\bes gibt (?:\w+ )?keine {_DE_FACTS}"
        rf"|\bgeht (?:\w+ ){{0,2}}?aus (?:\w+ ){{1,2}}{_DE_TEXTS} (?:\w+ )?nicht hervor\b"
        r"|\A\W*keine ahnung\b(?=\W*\Z)|\b(?:ich bin|bin ich)(?: mir)?(?: \w+){0,2}? nicht sicher\b"
        r"|\b(?:mir ist|ist mir)(?: \w+){0,3}? nicht bekannt\b"
        rf"|\bfinde ich (?:\w+ ){{0,2}}?(?:nichts|keine?n? (?:\w+ )?{_DE_FACTS})",
        claims=r"\d|\b(?:ist|sind|beträgt|kostet|kosten|muss|müssen|darf|dürfen|wird|werden)\b",
        excuses=r"\b(?:es )?tut mir (?:sehr )?leid\b|\bleider\b|\bentschuldig\w*|\bbedaure\b"
        r"|\b(?:danke|(?:vielen|herzlichen|besten) dank)\b(?: für (?:ihre|die|deine) \w+)?|\bhallo\b"
        r"|\b(?:guten|schönen) (?:tag|morgen|abend)\b(?: noch)?"
        r"|\bgern geschehen\b|\bdazu\b|\bhierzu\b|\bdarüber\b|\bdas\b",
        points=r"\A\W*(?:bitte )?(?:wenden sie sich|kontaktieren sie|fragen sie|rufen sie|ich (?:empfehle"
        r"|rate)\b"
        r"|sie (?:können|sollten) sich (?:an|bei)\b)",
        asks=r"\A\W*(?:und |bitte )?(?:(?:an|auf|aus|bei|bis|für|in|mit|seit|um|von|zu) )?"
        r"(?:wie|was|wer|wann|wo|welche\w?|haben|sind|können|könnten|möchten"
        r"|meinen|geht|kann|soll)\b"
        r"[^?]*\?\W*\Z|\A\W*bitte (?:nennen|sagen|teilen|geben) sie mir\b",
        offers=r"\b(?:helfen|behilflich|noch etwas)\b",
        joints=r"\b(?:aber|jedoch|denn|weil|sondern|allerdings|und (?=(?:es|er|sie|das|die|der)\b))\b",
        goes_on=r"\A\W*(?:ob|wer|wie|was|wann|wo|warum|welche\w?)\b",
    ),
    "es": Refusals(
        lacks=r"\b(?:desconozco|ignoro) (?:es[ea]|est[ea]|el|la|los|las|cu[aá]l|si)\b"
        r"|\bno (?:lo )?(?:sé|encuentro|encontré|he (?:podido )?encontr\w+|estoy segur[oa])\b"
        r"|\bno (?:le |te )?puedo (?:\w+ )?(?:responder|ayudar|encontrar|decir|confirmar|proporcionar"
        r"|determinar"
        r"|acceder)\w*"
        rf"|\bno (?:tengo|tenemos|dispongo|disponemos|cuento|hay) (?:\w+ ){{0,4}}?{_ES_FACTS}"
        rf"|\b{_ES_TEXTS}(?: \w+){{0,3}}? no (?:\w+ )?(?:mencionan?|dicen?|indican?|especifican?|aclaran?"
        rf"|explican?"
        rf"|responden?|(?:contienen?|incluyen?|ofrecen?|proporcionan?|dan"
        rf"|tienen?) (?:\w+ ){{0,3}}?{_ES_FACTS})"
        r"|\bno (?:se (?:menciona|indica|especifica|dice|encuentra|aclara)n?|aparece|figura)\b"
        rf"(?: \S+){{0,8}}? en (?:\w+ ){{1,2}}{_ES_TEXTS}",
        claims=r"\d|\b(?:es|son|está|cuesta|debe|deben|puede|pueden)\b",
        excuses=r"\blo (?:siento|lamento)(?: mucho)?\b|\bdisculp\w*|\bperdón\b|\blamentablemente\b"
        r"|\bdesafortunadamente\b"
        r"|\bgracias\b(?: por \w+)?|\bhola\b|\bbuen(?:os|as|) (?:días?|tardes?|noches)\b|\bde nada\b",
        points=r"\A\W*(?:por favor,? )?(?:le |te )?(?:(?:sugiero|recomiendo)(?: que)? |puede "
        r"|podría )?(?:se )?"
        r"(?:contact|consult|comuní|comunic|pregunt|diríj|póngase en contacto)\w*",
        asks=r"¿[^?]*\?\W*\Z|\A\W*(?:por favor,? )?(?:indíqueme|dígame|dime|proporcione)\b",
        offers=r"\b(?:ayudar|ayudarle|ayudarte|algo más)\b",
        joints=r"\b(?:pero|sino|porque|aunque|sin embargo|ya que|y (?=(?:es|son|se|el|la|los|las|cuesta"
        r"|debe)\b))\b",
    ),
    "fr": Refusals(
        lacks=r"\bje ne (?:le )?(?:sais|trouve|vois|connais) (?:\w+ )?(?:pas|rien|aucune?)\b"
        r"|\bje ne (?:peux|pourrais) (?:\w+ )?pas (?:vous |y |le |en )*(?:répondre|aider|confirmer"
        r"|trouver|fournir|donner|dire|déterminer|accéder|renseigner)\b"
        r"|\bje ne suis (?:\w+ )?pas (?:sûre?|certaine?|en mesure|capable|au courant)\b"
        rf"|\b(?:je n'ai|nous n'avons|il n'y a) (?:\w+ )?(?:pas|aucune?"
        rf"|rien)(?: \S+){{0,4}}? ?(?:{_FR_FACTS}|trouvé)"
        rf"|\b{_FR_TEXTS}(?: \w+){{0,2}}? ne (?:(?:mentionn|précis|indiqu|parl|répond|spécifi|di[ts])\w*"
        r" (?:pas|rien|aucune?|nulle part)\b"
        rf"|(?:cont|fourni|donn)\w* (?:pas|aucune?|rien)(?: \S+){{0,3}}? ?{_FR_FACTS})"
        rf"|\bn(?:e |')(?:est|sont) (?:pas|nulle part) \w+ (?:dans|par) (?:\w+ ){{1,2}}{_FR_TEXTS}"
        r"|\bn(?:e (?:figur|se trouv)|'apparai|'apparaî)\w* (?:pas|nulle part) dans (?:\w+ ){1,2}"
        rf"{_FR_TEXTS}|\b(?:je ne dispose|nous ne disposons) (?:pas|d'aucune?) (?:\S+ ){{0,3}}?{_FR_FACTS}",
        claims=r"\d|\b(?:est|sont|coûte|doit|doivent|peut|peuvent|faut)\b",
        excuses=r"\b(?:je suis )?(?:vraiment )?désolée?\b|\bje regrette\b|\bmalheureusement\b|\bpardon\b"
        r"|\bmerci\b"
        r"|\bbonjour\b|\bexcusez-moi\b|\bje vous en prie\b|\bavec plaisir\b|\bbonne (?:journée|soirée)\b",
        points=r"\A\W*(?:veuillez|je vous (?:conseille|suggère|recommande) de|je vous invite à|vous pouvez"
        r"|merci de)? ?(?:contacte[rz]"
        r"|consulte[rz]|vous adresser|adressez-vous|demande[rz] à|vous renseigner)\b",
        asks=r"\A\W*(?:quel\w*|qui|quand|où|comment|combien|pouvez|pourriez|avez|êtes|est-ce"
        r"|puis-je)\b[^?]*\?\W*\Z"
        r"|-(?:vous|t-il|t-elle)\b[^?]*\?\W*\Z|\A\W*(?:veuillez|merci de) (?:me )?(?:préciser|indiquer)\b",
        offers=r"\b(?:aider|autre chose)\b",
        joints=r"\b(?:mais|car|parce que|cependant|toutefois|et (?=(?:il|elle|c'est|le|la|les|vous)\b))",
    ),
    "hi": Refusals(
        lacks=r"(?:नहीं पता|पता नहीं|नहीं जानता|नहीं जानती|मालूम नहीं|नहीं मालूम|ज्ञात नहीं"
        r"|निश्चित नहीं)" + _HI_FORMS + "|"
        rf"{_HI_FACTS}(?: (?:भी|उपलब्ध|मेरे|पास|इन|इस|में|मुझे|कोई|शामिल|मौजूद|प्राप्त|दर्ज|दिया|दी|स्पष्ट|तो"
        rf"|यहाँ|{_HI_TEXTS}"
        r")){0,4} नहीं" + _HI_FORMS + "|"
        r"मैं(?: \S+){0,12}? नहीं (?:बता|दे|कर|ढूँढ|ढूंढ|खोज)"
        + _HI_FORMS
        + r"|मैं(?: \S+){0,12}? असमर्थ"
        + _HI_FORMS
        + "|"
        rf"{_HI_TEXTS}(?: \S+){{0,8}}? (?:नहीं|कुछ नहीं) (?:बताते|बताता|बताया|कहते|कहा|लिखा|दिया"
        rf"|दी)" + _HI_FORMS,
        claims=r"\d|[०-९]|(?<!\S)(?:है|हैं|होगा|होगी|था|थी|थे|चाहिए|सकते)(?!\S)",
        excuses=r"(?:मुझे )?(?:खेद|अफ़सोस|अफसोस) है(?: कि)?|(?:मुझे )?(?:क्षमा|माफ़|माफ) (?:करें|कीजिए|कीजिएगा)"
        r"|दुर्भाग्य से|दुर्भाग्यवश|धन्यवाद|नमस्ते|आपका स्वागत है",
        points=r"(?:संपर्क|सम्पर्क)(?: \S+){0,2}? (?:करें|कीजिए|कर सकते हैं)\W*\Z|से (?:पूछें|पूछिए"
        r"|पूछ सकते हैं)\W*\Z",
        asks=r"[?？]\W*\Z|\A\W*कृपया (?:मुझे )?[^।]{0,80}(?:बताएं|बताएँ|बताइए|साझा करें)\W*\Z",
        offers=r"(?:मदद|सहायता)",
        joints=r"(?<!\S)(?:लेकिन|परंतु|परन्तु|किंतु|किन्तु|मगर|क्योंकि|बल्कि|इसलिए)(?!\S)",
        about=r"\A\W*(?:कि|की)(?!\S)",
    ),
    "ar": Refusals(
        lacks=r"(?<!\S)لا (?:أعرف|أعلم|أدري|أملك|تتوفر لدي|يتوفر لدي|توجد لدي)|(?<!\S)لست متأكد\w*"
        rf"|(?<!\S)ليست? لدي(?:نا)?(?: \S+){{0,3}}? {_AR_FACTS}"
        r"|(?<!\S)لا (?:يمكنني|أستطيع) (?:الإجابة|مساعدتك|المساعدة|العثور|تأكيد|تقديم|تحديد|إخبارك|معرفة"
        r"|الوصول)"
        r"|(?<!\S)لم (?:أجد|أتمكن من|أعثر)(?!\S)"
        rf"|(?<!\S)لا (?:توجد|تتوفر|يوجد)(?: \S+){{0,2}}? {_AR_FACTS}"
        rf"|(?<!\S){_AR_TEXTS}(?: \S+){{0,2}}? (?:لا|لم) (?:تذكر|يذكر|تشير|تشر|توضح|تحدد|تقول|تبين|تتطرق"
        rf"|(?:تحتوي|تتضمن|تقدم)(?: \S+){{0,3}}? {_AR_FACTS})"
        rf"|(?<!\S)(?:لا|لم) (?:تذكر|تشير|توضح|تحدد|تقول|تبين) {_AR_TEXTS}"
        rf"|(?<!\S)لا (?:تحتوي|تتضمن) {_AR_TEXTS}(?: \S+){{0,3}}? {_AR_FACTS}"
        rf"|(?<!\S)(?:لم|لا) (?:يذكر|يرد|يحدد)(?: \S+){{0,6}}? في {_AR_TEXTS}",
        claims=r"\d|[٠-٩]|(?<!\S)(?:هو|هي|يجب|يمكن|يبلغ|تبلغ|كان|كانت)(?!\S)",
        excuses=r"(?:أنا )?آسفة?|أعتذر|عذرا|معذرة|للأسف|شكرا(?: لك)?|مرحبا|عفوا|يؤسفني"
        r"|على الرحب والسعة",
        points=r"\A\W*(?:يرجى|الرجاء|من فضلك|يمكنك)? ?(?:الاتصال|التواصل|الرجوع|مراجعة|اتصل|تواصل"
        r"|استشارة)(?!\S)",
        asks=r"[؟?]\W*\Z|\A\W*(?:يرجى|الرجاء) (?:تزويدي|إخباري|تحديد|ذكر)(?!\S)",
        offers=r"(?:مساعدتك|أساعدك|المساعدة)",
        joints=r"(?<!\S)(?:لكن|ولكن|لكنها?|ولكنها?|غير أن|لأن|بل|حيث)(?!\S)",
    ),
    "zh": Refusals(
        lacks=rf"{_ZH_BEFORE}(?:不知道|不清楚|不了解|不确定|不太清楚)"
        rf"|{_ZH_BEFORE}(?:无法|不能|没法)\S{{0,4}}?(?:回答|提供|确定|确认|找到|帮助|帮您|帮你|协助|告诉"
        rf"|判断|得知)"
        rf"|{_ZH_BEFORE}(?:在\S{{1,12}}[中里])?(?:没有?找到|未能?找到|找不到|查不到)"
        r"|超出了?(?:我|本助手)的?(?:能力|知识|回答|解答|职责)"
        rf"|{_ZH_BEFORE}没有(?:关于|有关)?\S{{0,20}}?{_ZH_FACTS}"
        rf"|{_ZH_TEXTS}(?:中|里|内)?(?:并|都|也|均)?(?:没有|未|并未|没)(?:明确|具体|直接)?(?:提到|提及"
        rf"|说明|指出|涉及|列出|写明)"
        rf"|{_ZH_TEXTS}(?:中|里|内)?(?:并|都|也|均)?(?:没有|未|不)(?:包含|包括|提供"
        rf"|给出)?\S{{0,20}}?{_ZH_FACTS}",
        claims=r"\d|(?:是(?!否)|需要|可以|必须|应当|应该)",
        excuses=r"(?:非常|很|十分)?(?:抱歉|对不起|不好意思|遗憾)|遗憾的是|\A根据\S{0,14}\Z|谢谢|您好|你好"
        r"|不客气",
        points=r"\A\W*(?:请|建议您?|您可以|你可以)(?:直接)?(?:咨询|联系|询问|查阅|向)",
        asks=r"[?？]\W*\Z|\A\W*请(?:告诉我|提供|说明|问)",
        offers=r"(?:帮您|帮你|帮助|帮忙|还有)",
        joints=r"(?:但是|但|不过|然而|因为|因此|所以|而且)",
    ),
    "ja": Refusals(
        lacks=r"(?:わかり|分かり|知り|存じ|存じ上げ)ません(?:でした)?|(?:わかり|分かり|お答えし"
        r"|お答えいたし)かねます"
        r"|(?:お答え|回答|お手伝い)(?:(?:する|を提供する)ことが)?でき"
        + _JA_NOT
        + r"|お役に立て"
        + _JA_NOT
        + "|"
        rf"{_JA_FACTS}(?:は|が|も|を)\S{{0,12}}?(?:あり|ござい|含まれてい|見当たり|見つかり|見つけられ"
        rf"|見つけることができ|存在し"
        rf"|持ってい|持ってお|提供されてい|提供でき){_JA_NOT}"
        rf"|{_JA_TEXTS}\S{{0,30}}?(?:(?:記載|言及|説明|明記|記述)されて(?:い|お)|触れ(?:られ)?て(?:い|お)"
        rf"|確認でき|見つかり){_JA_NOT}"
        rf"|提供された(?:情報|資料)に(?:は)?\S{{0,12}}?含まれて(?:い|お){_JA_NOT}",
        claims=r"\d|[０-９]|(?:です|ます|ました|である)",
        excuses=r"(?:大変|誠に)?(?:申し訳(?:ありません|ございません)|すみません|恐れ入ります"
        r"|残念ながら)(?:が)?"
        r"|ありがとうございます|こんにちは|どういたしまして|\A\S{1,20}(?:については|に関しては|によると"
        r"|からは)\Z",
        points=r"(?:お問い合わせ|お尋ね|ご相談|ご連絡|ご確認)(?:ください|をお勧めします"
        r"|いただけますか)\W*\Z",
        asks=r"[?？]\W*\Z|か\W*\Z|(?:教えて|お知らせ)(?:ください|いただけますか)\W*\Z",
        offers=r"(?:お手伝い|ご質問|お役に立て)",
        joints=r"、|(?:しかし|ただし|けれども|なので)",
        about=r"(?!)",
    ),
    "th": Refusals(
        lacks=r"\A(?:แต่)?(?:ฉัน|ผม|ดิฉัน|เรา)?(?:ไม่ทราบ|ไม่รู้|ไม่แน่ใจ|ไม่มีข้อมูล|ไม่พบข้อมูล|หาข้อมูลไม่พบ|หาไม่พบ"
        r"|ตอบไม่ได้"
        r"|ไม่สามารถ(?:ตอบ|ให้ข้อมูล|ช่วย|ยืนยัน|ระบุ|บอก|ค้นหา|หา|เข้าถึง))"
        rf"|{_TH_TEXTS}\S{{0,30}}?(?:ไม่ได้(?:ระบุ|กล่าวถึง|พูดถึง|บอก|อธิบาย|ให้ข้อมูล)|ไม่มีข้อมูล|ไม่ระบุ|ไม่กล่าวถึง)",
        claims=r"\d|[๐-๙]|(?:คือ|เป็น|ต้อง)",
        excuses=r"(?:ต้อง)?(?:ขออภัย|ขอโทษ|น่าเสียดาย|ขอบคุณ|สวัสดี|ยินดี)(?:ด้วย)?(?:นะ)?(?:ค่ะ|คะ|ครับ)?",
        points=r"\A(?:กรุณา|โปรด|แนะนำให้)(?:ติดต่อ|สอบถาม|ปรึกษา)",
        asks=r"[?？]\W*\Z|(?:ไหม|มั้ย|หรือไม่|หรือเปล่า|เท่าไร|เท่าไหร่|อะไร|ที่ไหน|เมื่อไร|เมื่อไหร่|อย่างไร)(?:คะ"
        r"|ครับ|ค่ะ)?\W*\Z",
        offers=r"(?:ช่วย|เพิ่มเติม)",
        joints=r"\s+|(?:แต่|เพราะ|เนื่องจาก|ดังนั้น)",
    ),
}
"""Code of a language → its patterns."""
IN_LATIN_SCRIPT = ("de", "es", "fr")

_SHORT_VOWELS = re.compile("[\u064b-\u0652]")
_BREAK = r"[,،，;；؛:：()（）—–]|[.!?…]\s|[。！？।]"
_ADDRESS = re.compile(r"\d|@|://|www\.")
_SPEAKS = re.compile(r"\w")


def declines_in(code: str, sentence: str) -> bool:
    """Return whether a sentence says that something is not known or not told, and claims nothing else.

    >>> declines_in("hi", "मुझे नहीं पता।"), declines_in("de", "Ich weiß es nicht, aber es kostet nichts.")
    (True, False)

    Args:
        code: of a language in `REFUSALS`.
    """
    patterns = _get_patterns(code)
    lacking = False
    spoken = filter(_SPEAKS.search, patterns["joints"].split(_write_plainly(sentence)))
    for clause in map(str.strip, spoken):
        if _lacks(patterns, clause):
            lacking = True
        elif (
            _SPEAKS.search(patterns["excuses"].sub("", clause))
            and not _points(patterns, clause)
            and not (lacking and patterns["goes_on"].match(clause))
        ):
            return False
    return lacking


def classify_in(code: str, sentence: str) -> ForeignKind:
    """Return what a sentence does.

    >>> classify_in("es", "¿Qué edad tiene?")
    'asks back'

    Args:
        code: of a language in `REFUSALS`.
    """
    patterns, plain = _get_patterns(code), _write_plainly(sentence)
    if declines_in(code, sentence):
        return "declines"
    if patterns["asks"].search(plain):
        return "courtesy" if patterns["offers"].search(plain) else "asks back"
    if _points(patterns, plain):
        return "declines"
    return "answers" if _SPEAKS.search(patterns["excuses"].sub("", plain)) else "courtesy"


def _lacks(patterns: Mapping[str, re.Pattern[str]], clause: str) -> bool:
    lack = patterns["lacks"].search(clause)
    if lack is None or patterns["claims"].search(patterns["excuses"].sub("", clause[: lack.start()])):
        return False
    after = clause[lack.end() :]
    about = patterns["about"]
    return not about.pattern or bool(about.match(after)) or not patterns["claims"].search(after)


def _points(patterns: Mapping[str, re.Pattern[str]], clause: str) -> bool:
    return patterns["points"].search(clause) is not None and _ADDRESS.search(clause) is None


def _write_plainly(sentence: str) -> str:
    plain = unicodedata.normalize("NFC", " ".join(sentence.replace("’", "'").split()))
    return _SHORT_VOWELS.sub("", plain)


@cache
def _get_patterns(code: str) -> Mapping[str, re.Pattern[str]]:
    given = {one.name: getattr(REFUSALS[code], one.name) for one in fields(Refusals)}
    given["joints"] = f"{_BREAK}|{given['joints']}"
    return {
        name: re.compile(unicodedata.normalize("NFC", text), re.IGNORECASE) for name, text in given.items()
    }

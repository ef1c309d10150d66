"""Full stops of abbreviations, initials and ordinal numbers end no sentence, in many languages."""

from __future__ import annotations

import pytest

from hallulab.scenarios.text.spans import split_sentences


@pytest.mark.parametrize(
    "marked",
    [
        "A lost drill costs $40 (max. $60) incl. tax. | Ph.D. students pay half. | Take 2 tbsp. of oil.",
        "Die Gebühr beträgt ca. 5 Euro, d. h. pro Tag. | Danach kostet es z. B. 8 Euro.",
        "Am 1. Mai ist der Schuppen zu. | Am 24. Dezember auch.",
        "Fragen Sie Frau Dr. Weir bzw. Herrn Prof. Mill. | Sie haben die Nr. 5 usw. im Haus.",
        "Siehe § 5 Abs. 2 Satz 1 der Satzung v. 3. März 2020. | Das gilt u. a. für Bohrer.",
        "Die Hauptstr. 5 liegt gegenüber. | Tel. 030 1234. | Max. 3 Geräte inkl. Koffer.",
        "Der 2. Stock und die 3. Etage sind zu. | Es gibt ggf. Ersatz.",
        "La caution est de 50 €, p. ex. pour une perceuse. | M. Mill et Mme. Weir sont au n° 5 av. de Lyon.",
        "Voir art. 5 al. 2 du règlement. | Le prix est de 4,50 € env. par jour, cf. annexe.",
        "Combien coûte la perceuse ? | Elle coûte 4 € ! | Merci.",
        "La Sra. Weir está en la Av. Mayor núm. 5. | ¿Cuánto es? | Cuesta 4 €, p. ej. por día.",
        "Véase el art. 5, párr. 2, pág. 3. | Uds. pagan 5 € aprox. por día.",
        "O Sr. Silva e a Sra. Weir atendem na Av. Central, nº 5. | A taxa é de 4 €, p. ex. por dia.",
        "Il sig. Rossi e la dott.ssa Weir rispondono al n. 5. | Costa 4 € ecc. al giorno, cfr. art. 5.",
        "La quota è di ca. 5 euro. | Vedi pag. 3 e segg. del regolamento.",
        "Opłata wynosi np. 5 zł, tj. ok. 1 euro. | Czynne od godz. 9 przy ul. Młyńskiej 5.",
        "W 2020 r. składka wynosiła 20 zł. | Zob. art. 5 ust. 2 regulaminu.",
        "Плата составляет 5 руб. в день, т. е. 35 руб. в неделю. | Адрес: ул. Мельничная, д. 5.",
        "См. п. 5 и т. д. правил. | Напр. дрель стоит 4 евро.",
        "Плата становить 5 грн. на день, тобто напр. 35 грн. на тиждень. | Адреса: вул. Млинна, буд. 5.",
        "De kosten zijn ca. 5 euro, d.w.z. per dag, bijv. voor een boor. | Dhr. Weir woont op nr. 5.",
        "Poplatek je např. 5 Kč, tj. cca. 1 euro. | Otevřeno od 1. května do 24. prosince.",
        "Åbent fra den 1. maj til den 24. december. | Det koster ca. 5 kr. pr. dag.",
        "शुल्क रु. 500 है। | डॉ. राव से पूछें। | क्या यह मुफ़्त है? | हाँ।",
        "ফি ৫০০ টাকা। | ড. রাও জানেন। | এটা কি বিনামূল্যে?",
        "فیس 500 روپے ہے۔ | ڈاکٹر راؤ سے پوچھیں۔ | کیا یہ مفت ہے؟",
        "Biaya sewa Rp. 5.000 per hari. | Lihat Jl. Merdeka No. 5. | Hubungi Bpk. Weir dll. di kantor.",
        "கட்டணம் ரூ. 500 ஆகும். | இது இலவசமா? | ஆம்.",
        "రుసుము రూ. 500. | ఇది ఉచితమా? | అవును.",
        "Η χρέωση είναι 5 ευρώ π.χ. την ημέρα. | Είναι δωρεάν; | Ναι, κ. Παππά.",
    ],
)
def test_a_sentence_ends_where_it_is_marked(marked: str) -> None:
    text = marked.replace(" | ", " ")
    assert " | ".join(region.of(text) for region in split_sentences(text)) == marked

"""Citations are read from replies in all their spellings, and other words in brackets are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hallulab.scenarios.text.citations import read_citations

NAMES = (
    ("refund-policy.md", "refund-policy.md#0", "Refund policy"),
    ("Shipping FAQ", "https://acme.com/help/shipping"),
    ("cards",),
)


@pytest.mark.parametrize(
    ("reply", "cited"),
    [
        ("It is free [1], or not [2; 3] [1, 4].", [1, 2, 3, 1, 4]),
        ("It is free [1][3] [ 2 ] [^1].", [1, 3, 2, 1]),
        ("It is free [1–3], not [100-300].", [1, 2, 3]),
        ("It is free [doc2] [Document 3] (passage 1) [Source: 2].", [2, 3, 1, 2]),
        ("It is free 【1†source】【4:0†source】【4:1†refund-policy.md】【7】.", [1, 1, 1, 7]),
        ("It is free (Source: refund-policy.md).", [1]),
        ("It is free [Source: made-up.md].", ["made-up.md"]),
        ("It is free (Sources: Refund policy, section 3; Shipping FAQ).", [1, 2]),
        ("It is free.\nSource: refund policy", [1]),
        ("It is free. **Sources:** cards, refund-policy.md", [3, 1]),
        ("[Refund policy](https://elsewhere.com) [Help](https://acme.com/help/shipping)", [1, 2]),
        ("[Refund terms](https://elsewhere.com/terms)", ["https://elsewhere.com/terms"]),
        ("[1](https://acme.com/help/shipping) [3](https://elsewhere.com)", [2, 3]),
        ("[us](mailto:a@acme.com) [top](#top) ![plan](https://acme.com/plan.png)", []),
        ("[refund policy] (Refund policy, section 2) [cards]", [1, 1, 3]),
        ("According to the Refund policy, it is free, see Shipping FAQ.", [1, 2]),
        ("Passage 3 says that it is free; according to passage 1, it is not (passages 1 & 2).", [3, 1, 1, 2]),
        ("It is free (Passage 1, steps 2-3) [3, p. 7].", [1, 3]),
        ("Document 2 and Source 3 say so. Bring documents 2 days before.", [2, 3]),
        ("It is free (as refund-policy.md says).", [1]),
        ("Read `refund-policy.md` or https://acme.com/help/shipping.", [1, 2]),
        ("See cards below (cards). The refund policy is new.", []),
        ("The (source code) and (Reference: AB-12.md) [sources say].\nReference: AB-12", []),
        ("It is free (source refund-policy.md) (Ref: cards).", [1]),
        ("array[10000], in [2024], [a] or (2), [no source] (see below)", []),
        ("It is free [1].\n\nSources:\n[1] Shipping FAQ\n", [2]),
        ("It is free [2].\n\n## References\n2. made-up.md", ["made-up.md"]),
        ("It is free [2].\n\nSources:\n1. [Refund policy](https://a.b/c)\n- cards\n\nBye!", [2, 1, 3]),
        ("It is free [^1] [^fees].\n\n[^1]: cards\n[^fees]: Refund policy, p. 3", [3, 1]),
        ("It is free [^2].\n\n[^2]: The desk says so.", [2]),
        ("It is free.¹ Cards² cost 5 € per m²; 10³ of them.¹³", [1, 2, 1, 3]),
        ("It is free.<sup>1</sup> It opens<sup>[3]</sup>.", [1, 3]),
        (
            "It is free [citation:1] [cite: 2, 3] [ref_1] [^2^] [1†L3-L5] ［3］ [#2].",
            [1, 2, 3, 1, 2, 1, 3, 2],
        ),
        ("It is free [[2]](https://acme.com/help/shipping) [cards; Refund policy] (#3).", [2, 3, 1]),
        ("Es ist frei [Quelle 1] (Dokument 2) (Quelle: cards).", [1, 2, 3]),
        ("免费[来源1]（来源：refund-policy.md）。", [1, 1]),
        ("無料です（資料2）。出典：cards", [2, 3]),
    ],
)
def test_citations_are_read(reply: str, cited: list[int | str]) -> None:
    found = read_citations(reply, NAMES).citations
    assert [one.name or one.cited for one in found] == [
        (one,) if isinstance(one, int) else one for one in cited
    ]


def test_a_name_cites_all_passages_that_have_it() -> None:
    (found,) = read_citations("It is free [cards].", [("cards",), ("fees",), ("cards",)]).citations
    assert found.cited == (1, 3)


def test_a_sentence_is_left_without_marks_and_with_the_label_of_a_link() -> None:
    reply = "A [late film](https://acme.com/help/shipping) [1] costs.\n\nSources:\n- cards\n"
    read = read_citations(reply, NAMES)
    assert read.plain.split() == ["A", "late", "film", "costs."]
    assert len(read.plain) == len(reply)


def test_a_citation_says_where_it_stands() -> None:
    reply = "It is free [1, 2]."
    assert [reply[slice(*one.place)] for one in read_citations(reply, NAMES).citations] == ["[1, 2]"] * 2


def test_a_list_of_sources_is_no_sentence() -> None:
    found = read_citations("It is free [1].\n\nSources:\n1. cards\n2. Shipping FAQ", NAMES).citations
    assert [(one.cited, one.kind) for one in found] == [((3,), "mark"), ((2,), "listed")]


@given(st.text(st.sampled_from("[]()^1 -–:;,.\n【†】aS#*!"), max_size=60))
def test_any_text_is_read_and_only_blanked(text: str) -> None:
    read = read_citations(text, NAMES)
    assert all(new in (old, " ") for old, new in zip(text, read.plain, strict=True))


@given(st.permutations(range(1, 6)), st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_renumbered_marks_cite_renumbered_passages(order: list[int], cited: list[int]) -> None:
    before = read_citations("".join(f"So [{number}]. " for number in cited), ())
    after = read_citations("".join(f"So [{order[number - 1]}]. " for number in cited), ())
    assert [order[one.cited[0] - 1] for one in before.citations] == [one.cited[0] for one in after.citations]

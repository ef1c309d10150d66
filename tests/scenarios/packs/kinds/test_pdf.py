"""A PDF is read in the order in which people read it, and what is left out is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.scenarios.packs.kinds import Extracted, pdf
from tests.scenarios.packs.pdf_files import Text, draw, write_pages

LEFT = [
    "The mill grinds rye and",
    "wheat for every farm of",
    "the valley. One sack costs",
    "four crowns to grind.",
]
RIGHT = [
    "Oats are ground only in",
    "autumn, after the harvest.",
    "A deposit of six crowns is",
    "paid at the gate.",
]


def column(left: float, lines: Sequence[str], top: float = 700) -> list[Text]:
    return [(left, top - 14 * number, line) for number, line in enumerate(lines)]


def read(*pages: Sequence[Text] | str, **more: str) -> Extracted:
    return pdf.read(write_pages(*pages, **more))  # type: ignore[arg-type]


COLUMNS = (
    "The mill grinds rye and wheat for every farm of the valley. One sack costs four crowns to grind.\n\n"
    "Oats are ground only in autumn, after the harvest. A deposit of six crowns is paid at the gate."
)


def test_columns_are_read_one_after_the_other_in_whatever_order_they_are_drawn() -> None:
    left, right = column(60, LEFT), column(330, RIGHT)
    assert read(left + right).text == COLUMNS
    assert read(right + left).text == COLUMNS
    assert read([text for pair in zip(left, right, strict=True) for text in pair]).text == COLUMNS


def test_columns_stand_under_a_headline_over_the_whole_width() -> None:
    page = [
        (60.0, 740.0, "Rules of the mill, of the weir and of the road that leads to both, since May", 14.0)
    ]
    assert read([*page, *column(60, LEFT), *column(330, RIGHT)]).text == (
        f"Rules of the mill, of the weir and of the road that leads to both, since May\n\n{COLUMNS}"
    )


def test_a_column_may_begin_above_the_one_to_its_left() -> None:
    page = [*column(60, LEFT), *column(330, ["Barley is not ground.", *RIGHT], 709)]
    assert read(page).text == COLUMNS.replace("Oats", "Barley is not ground. Oats")


def test_a_table_far_below_columns_is_no_part_of_them() -> None:
    cells = [(60, "Grain"), (250, "Sack"), (420, "Cart"), (60, "Rye"), (250, "4"), (420, "30")]
    table: list[Text] = [(left, 600 - 16 * (at // 3), cell) for at, (left, cell) in enumerate(cells)]
    assert read([*column(60, LEFT), *column(330, RIGHT), *table]).text == (
        f"{COLUMNS}\n\n| Grain | Sack | Cart |\n| --- | --- | --- |\n| Rye | 4 | 30 |"
    )


def test_a_sentence_goes_on_in_the_next_column() -> None:
    one, other = (
        column(60, [*LEFT[:3], "four crowns, and it is"]),
        column(330, ["ground on the day of its", *RIGHT[1:]]),
    )
    assert read(one + other).text == (
        "The mill grinds rye and wheat for every farm of the valley. One sack costs four crowns, and it is "
        "ground on the day of its autumn, after the harvest. A deposit of six crowns is paid at the gate."
    )


def test_a_line_of_blanks_parts_paragraphs() -> None:
    assert read([(60, 700, "It is free."), (60, 686, "   "), (60, 672, "It is open.")]).text == (
        "It is free.\n\nIt is open."
    )


def test_a_table_keeps_the_columns_of_empty_cells() -> None:
    rows = [("Grain", "Sack", "Cart"), ("Rye", "4", "30"), ("Oats", "", "25"), ("", "2", "12")]
    page = [
        (left, 700.0 - 16 * number, cell)
        for number, row in enumerate(rows)
        for left, cell in zip((60.0, 200.0, 300.0), row, strict=True)
        if cell
    ]
    assert read([(60, 760, "Prices by the cart and by the sack, in crowns:"), *page]).text == (
        "Prices by the cart and by the sack, in crowns:\n\n"
        "| Grain | Sack | Cart |\n| --- | --- | --- |\n| Rye | 4 | 30 |\n| Oats |  | 25 |\n|  | 2 | 12 |"
    )


def test_a_head_over_several_columns_stands_over_each() -> None:
    rows = [[(60, "Grain"), (250, "Price in crowns")], [(200, "Sack"), (330, "Cart")]]
    rows += [[(60, "Rye"), (200, "4"), (330, "30")], [(60, "Oats"), (330, "25")]]
    page = [(left, 700.0 - 16 * number, cell) for number, row in enumerate(rows) for left, cell in row]
    assert read(page).text == (
        "| Grain | Price in crowns Sack | Price in crowns Cart |\n| --- | --- | --- |\n| Rye | 4 | 30 |\n"
        "| Oats |  | 25 |"
    )


def test_lines_of_a_cell_are_joined() -> None:
    page: list[Text] = [(60, 700, "Grain"), (160, 700, "When"), (400, 700, "Crowns")]
    page += [
        (60, 680, "Rye"),
        (160, 680, "Only on days on which"),
        (160, 667, "the weir is open"),
        (400, 680, "4"),
    ]
    page += [(60, 645, "Oats"), (160, 645, "In autumn"), (400, 645, "3")]
    assert read(page).text == (
        "| Grain | When | Crowns |\n| --- | --- | --- |\n"
        "| Rye | Only on days on which the weir is open | 4 |\n"
        "| Oats | In autumn | 3 |"
    )


@pytest.mark.parametrize("place", [1, 2])
def test_a_row_whose_first_cell_stands_in_the_middle_or_below_is_one(place: int) -> None:
    page: list[Text] = [(60, 700, "Grain"), (160, 700, "When"), (400, 700, "Crowns")]
    for top, grain, crowns in ((670, "Rye", "4"), (620, "Oats", "3")):
        page += [(160, top, "Only on days"), (160, top - 12, "on which the"), (160, top - 24, "weir is open")]
        page += [(60, top - 12 * place, grain), (400, top - 12 * place, crowns)]
    assert read(page).text == (
        "| Grain | When | Crowns |\n| --- | --- | --- |\n"
        "| Rye | Only on days on which the weir is open | 4 |\n"
        "| Oats | Only on days on which the weir is open | 3 |"
    )


def test_upright_lines_part_cells_that_stand_close() -> None:
    cells = [(60, 700, "Saw"), (92, 700, "Fee"), (60, 684, "Rye"), (92, 684, "4")]
    assert read([*cells[:2], *cells[2:]]).text == "Saw Fee Rye 4"
    page = "".join(draw(*cell) for cell in cells) + " 87 680 m 87 712 l S"
    assert read(page).text == "| Saw | Fee |\n| --- | --- |\n| Rye | 4 |"


def test_small_letters_go_on_with_the_row_above() -> None:
    cells = [(700, "Load", "Fee", "Note"), (672, "Carts of rye", "4", "Not if the wind"),
             (658, "or wheat", "", "is too strong"), (630, "Sacks", "1", "Daily")]  # fmt: skip
    page = [(x, y, cell) for y, *row in cells for x, cell in zip((60, 250, 400), row, strict=True) if cell]
    assert read(page).text == (
        "| Load | Fee | Note |\n| --- | --- | --- |\n"
        "| Carts of rye or wheat | 4 | Not if the wind is too strong |\n| Sacks | 1 | Daily |"
    )


def test_ligatures_and_hyphens_at_the_end_of_lines_are_undone() -> None:
    font = "/Type1/BaseFont/Helvetica/Encoding<</BaseEncoding/WinAnsiEncoding/Differences[1/fi/ffi]>>"
    lines = [
        "The o\\002ce of the mill is open to every farmer of the valley who brings infor-",
        "mation on the \\001rst frost. The office keeps a long-term list and a well-",
        "kept yard; the long-",
        "term list has two-",
        "and three-year entries, and Rye-",
        "Mills are named.",
    ]
    assert read(column(60, lines), font=font).text == (
        "The office of the mill is open to every farmer of the valley who brings information on the first "
        "frost. The office keeps a long-term list and a well-kept yard; the long-term list has two- and "
        "three-year entries, and Rye-Mills are named."
    )


def test_superscripts_are_marks_of_footnotes_or_powers() -> None:
    page: list[Text] = [
        (60, 700, "A sack costs 40"),
        (140, 704, "1", 7),
        (146, 700, "crowns and weighs 10"),
        (252, 704, "2", 7),
        (258, 700, "pounds; it is the 1"),
        (352, 704, "st", 7),
        (360, 700, "kind of H"),
        (405, 697, "2", 7),
        (409, 700, "O mill."),
        (60, 90, "1 Widows pay half.", 7),
    ]
    assert read(page).text == (
        "A sack costs 40 [1] crowns and weighs 10^2 pounds; it is the 1st kind of H2O mill.\n\n"
        "[1] Widows pay half."
    )


def test_running_headers_and_page_numbers_are_left_out_and_told() -> None:
    def page(number: int, text: str) -> list[Text]:
        return [(60, 770, "Rules of the mill"), (60, 700, text), (300, 40, f"- {number} -")]

    found = read(page(1, "A sack is ground in two days, but only if the"), page(2, "weir is not frozen."))
    assert found.text == "A sack is ground in two days, but only if the weir is not frozen."
    assert found.notes == ("left out on several pages: Rules of the mill", "left out on several pages: - 1 -")


def test_a_sentence_goes_on_after_the_footnotes_of_its_page() -> None:
    one: list[Text] = [
        (60, 700, "A sack costs 40"),
        (140, 704, "1", 7),
        (146, 700, "crowns, but only if the"),
    ]
    found = read([*one, (60, 90, "1 Widows pay half.", 7)], [(60, 700, "weir is open.")])
    assert found.text == "A sack costs 40 [1] crowns, but only if the weir is open.\n\n[1] Widows pay half."


def test_a_page_without_text_is_named() -> None:
    found = read([(60, 700, "The plan of the weir follows.")], "0 0 300 300 re f", "")
    assert (found.text, found.notes) == ("The plan of the weir follows.", ("page 2 has no text (a scan?)",))


def test_values_of_a_form_stand_beside_their_names() -> None:
    field = "<</Type/Annot/Subtype/Widget/FT"
    page = write_pages(
        [(60, 700, "Name:"), (60, 682, "Deposit in crowns:"), (80, 660, "own sacks"), (80, 640, "cart")],
        annotations=[
            f"{field}/Tx/T(name)/V(Anna Weir)/Rect[200 696 300 710]>>",
            f"{field}/Tx/T(deposit)/V(60)/Rect[200 670 300 690]>>",
            f"{field}/Btn/T(own)/V/Yes/AS/Yes/AP<</N<</Yes 3 0 R/Off 3 0 R>>>>/Rect[60 656 72 670]>>",
            f"{field}/Btn/Ff 32768/T(by)/V/A/AS/Off/AP<</N<</B 3 0 R/Off 3 0 R>>>>/Rect[60 636 72 650]>>",
            "<</Type/Annot/Subtype/FreeText/Contents(Raised to 70 in May)/Rect[60 600 300 620]>>",
            "<</Type/Annot/Subtype/Text/Contents(ask the miller)/Rect[400 600 420 620]>>",
        ],
    )
    found = pdf.read(page)
    assert found.text == "Name: Anna Weir\nDeposit in crowns: 60\n☒ own sacks\n☐ cart\n\nRaised to 70 in May"
    assert found.notes == ("page 1: comments and marks of readers are left out (1)",)


def test_text_aslant_is_told_and_left_out() -> None:
    found = read(
        draw(60, 700, "Rye costs four crowns.") + " BT /F1 40 Tf .7 .7 -.7 .7 200 300 Tm (DRAFT) Tj ET"
    )
    assert found.text == "Rye costs four crowns."
    assert found.notes == ("page 1: text aslant (a watermark?) is left out: DRAFT",)


RYE, OATS = "Rye costs four crowns.", "Oats cost nine."
UNSEEN = ("page 1: text that is not seen is left out: Oats cost nine.",)


@pytest.mark.parametrize(
    "hidden",
    [
        "1 g " + draw(60, 600, OATS),
        "3 Tr " + draw(60, 600, OATS),
        draw(60, 600, OATS) + " 50 590 200 30 re f",
        ".2 g 50 590 200 30 re f " + draw(60, 600, OATS),
    ],
    ids=["white", "not painted", "under a box", "in the colour of its box"],
)
def test_text_that_nobody_sees_is_told_and_left_out(hidden: str) -> None:
    found = read(f"{draw(60, 700, RYE)} {hidden}")
    assert (found.text, found.notes) == (RYE, UNSEEN)


def test_white_text_on_a_dark_ground_is_seen() -> None:
    assert read(f"50 690 300 30 re f 1 g {draw(60, 700, RYE)}").text == RYE


def test_text_over_the_picture_of_a_page_is_read_though_it_is_not_painted() -> None:
    assert read(f"3 Tr {draw(60, 700, RYE)}") == Extracted(RYE)
    scan = "q 200 0 0 20 60 695 cm BI /W 8 /H 1 /BPC 1 /CS /G /F /AHx ID 55> EI Q"
    assert read(f"{draw(60, 100, OATS)} {scan} 3 Tr {draw(60, 700, RYE)}").text == f"{RYE}\n\n{OATS}"


def test_text_outside_of_the_page_is_left_out() -> None:
    assert read([(60, 700, RYE), (640, 700, OATS), (60, -20, OATS)]).text == RYE


@pytest.mark.parametrize(
    "headline",
    [
        "BT /F1 14 Tf 5 Tc 60 700 Td (Opening hours) Tj ET",
        "BT /F1 20 Tf 18 Tc 60 700 Td (Opening hours) Tj ET",
        draw(60, 700, "O p e n i n g   h o u r s"),
    ],
    ids=["set apart", "set far apart", "with spaces"],
)
def test_the_letters_of_a_headline_are_words(headline: str) -> None:
    assert read(headline).text == "Opening hours"


def test_a_cell_in_the_middle_of_several_rows_belongs_to_each() -> None:
    page: list[Text] = [(60, 700, "Region"), (160, 700, "Town"), (300, 700, "Crowns")]
    for top, region, towns in ((670, "North", ("Ulm", "Bonn")), (634, "South", ("Graz", "Bern"))):
        page += [(60, top - 9, region)]
        page += [(160, top - 18 * at, town) for at, town in enumerate(towns)]
        page += [(300, top - 18 * at, str(at + 4)) for at in range(2)]
    assert read(page).text == (
        "| Region | Town | Crowns |\n| --- | --- | --- |\n| North | Ulm | 4 |\n| North | Bonn | 5 |\n"
        "| South | Graz | 4 |\n| South | Bern | 5 |"
    )


def test_the_rows_of_a_head_are_one() -> None:
    page: list[Text] = [(170, 700, "On weekdays"), (320, 700, "On Sundays"), (60, 682, "Mill")]
    for at, row in enumerate((("Day", "Night", "Day", "Night"), ("4", "5", "6", "7"), ("8", "9", "3", "2"))):
        page += [(160 + 75 * place, 682 - 18 * at, cell) for place, cell in enumerate(row)]
        page += [(60, 682 - 18 * at, f"No {at}")] if at else []
    assert read(page).text.split("\n")[0] == (
        "| Mill | On weekdays Day | On weekdays Night | On Sundays Day | On Sundays Night |"
    )


def test_names_of_values_beside_an_address_are_no_columns_of_it() -> None:
    page: list[Text] = [(60, 700, "Anna Weir"), (60, 686, "Mill Lane 5")]
    page += [(350, 700, "Date:"), (430, 700, "1 March"), (350, 686, "Amount due:"), (430, 686, "40 crowns")]
    assert read(page).text == "Anna Weir Mill Lane 5\n\nDate: 1 March\nAmount due: 40 crowns"


def test_a_line_through_a_text_strikes_it_out() -> None:
    line = "60 703.4 m 166 703.4 l S"
    found = read(f"{draw(60, 700, 'Rye costs nine crowns')} {line} {draw(180, 700, 'four.')}")
    assert (found.text, found.notes) == ("four.", ("page 1: struck text is left out: Rye costs nine crowns",))
    for other in ("60 698 m 160 698 l S", "20 703.4 m 500 703.4 l S", "60 690 m 60 720 l S"):
        assert read(f"{draw(60, 700, 'Rye costs nine crowns')} {other}").text == "Rye costs nine crowns"


def test_the_last_line_of_a_paragraph_is_no_footer_though_another_page_ends_with_it() -> None:
    pages = [
        [(60.0, 84.0, f"Clause {number} says that"), (60.0, 70.0, "this costs nothing.")] for number in "AB"
    ]
    assert (
        read(*pages).text
        == "Clause A says that this costs nothing.\n\nClause B says that this costs nothing."
    )


def test_a_range_over_two_lines_is_one() -> None:
    assert read(column(60, ["The mill is open from 8-", "12 and on other days 9-", "11 in May."])).text == (
        "The mill is open from 8-12 and on other days 9-11 in May."
    )


def test_lines_that_differ_by_more_than_the_number_of_the_page_are_text() -> None:
    prices = ([(60.0, 770.0, f"Rye costs {price} crowns.")] for price in (4, 9, 7))
    assert read(*prices).text.split("\n\n") == [f"Rye costs {price} crowns." for price in (4, 9, 7)]


def test_a_large_first_letter_belongs_to_its_word() -> None:
    page: list[Text] = [(60, 700, "T", 40), (88, 714, "he mill grinds rye and"), (88, 700, "wheat for all.")]
    assert read(page).text == "The mill grinds rye and wheat for all."


def test_subscripts_far_below_the_line_and_superscripts_in_cells_stay_with_their_words() -> None:
    page: list[Text] = [(60, 700, "H"), (68, 694.5, "2", 8), (73, 700, "O costs"), (200, 701.5, "4.50", 12)]
    assert read([*page, (224, 706, "1", 9), (60, 650, "Rye"), (200, 650, "3")]).text.split("\n")[0] == (
        "| H2O costs | 4.50^1 |"
    )


def test_columns_that_are_written_downwards_are_read_from_the_right() -> None:
    font = "/Type0/BaseFont/HeiseiMin-W3/Encoding/UniJIS-UCS2-V/DescendantFonts[7 0 R]"
    descendant = (
        "<</Type/Font/Subtype/CIDFontType0/BaseFont/HeiseiMin-W3/DW 1000/FontDescriptor 8 0 R"
        "/CIDSystemInfo<</Registry(Adobe)/Ordering(Japan1)/Supplement 2>>>>"
    )
    about = "<</Type/FontDescriptor/FontName/HeiseiMin-W3/Flags 4/FontBBox[0 -200 1000 900]/Ascent 800>>"
    columns = ("道具の貸出は七日間です。", "延滞料は一日二百円です。")
    page = " ".join(
        f"BT /F1 12 Tf {500 - 25 * at} 700 Td <{text.encode('utf-16-be').hex()}> Tj ET"
        for at, text in enumerate(columns)
    )
    assert pdf.read(write_pages(page, font=font, annotations=[descendant, about])).text == "\n\n".join(
        columns
    )


def test_a_page_on_its_side_is_read() -> None:
    turned = "".join(
        f"BT /F1 11 Tf 0 1 -1 0 {100 + 14 * n} 60 Tm ({line}) Tj ET " for n, line in enumerate(LEFT)
    )
    assert read(turned).text == COLUMNS.split("\n\n")[0]


@pytest.mark.parametrize("drawn", ["<040203060504030201>", "<04020306>Tj 30 0 Td <0504030201>"])
def test_hebrew_is_read_from_the_right(drawn: str) -> None:
    letters = {1: "05E9", 2: "05DC", 3: "05D5", 4: "05DD", 5: "0020", 6: "05E2"}
    table = " ".join(f"<{code:02x}> <{letter}>" for code, letter in letters.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        f"{len(letters)} beginbfchar {table} endbfchar endcmap end"
    )
    widths = " ".join(["600"] * 7)
    font = f"/Type1/BaseFont/X/FirstChar 0/LastChar 6/Widths[{widths}]/ToUnicode 7 0 R"
    page = f"BT /F1 12 Tf 60 700 Td {drawn} Tj ET"
    stream = f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream"
    assert pdf.read(write_pages(page, font=font, annotations=[stream])).text == "שלום עולם"


# Signs: 1 is the letter na, 2 its vowel sign, 3 the letter ma, 4 a dot; all but the dot are 6 points wide.
JOINED = "/Span<</ActualText<FEFF0928093E>>>BDC <01>Tj <02>Tj EMC <03>Tj"
DOTTED = "/Span<</ActualText<FEFF0646>>>BDC 0 4 Td <04>Tj 0 -4 Td <02>Tj EMC <03>Tj"
RAISED = "<03030304>Tj"
AGAIN = f"{JOINED} 1 0 0 1 60 704 Tm /Span<</ActualText<FEFF0928>>>BDC <04>Tj EMC"


@pytest.mark.parametrize(
    ("drawn", "text"), [(JOINED, "नाम"), (DOTTED, "من"), (AGAIN, "नाम"), (RAISED, "aaa [1]")]
)
def test_signs_of_a_font_are_the_letters_that_they_stand_for(drawn: str, text: str) -> None:
    table = f"<03> <{'0645' if drawn == DOTTED else '0061' if drawn == RAISED else '092E'}> <04> <0031>"
    cmap = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        f"2 beginbfchar {table} endbfchar endcmap end"
    )
    boxes = {"a": "100 0 200 600", "b": "0 0 500 600", "c": "0 0 500 600", "d": "100 400 60 300"}
    signs = [f"500 0 d0 {box} re f" for box in boxes.values()]
    objects = [f"<</Length {len(one)}>>stream\n{one}\nendstream" for one in (cmap, *signs)]
    procs = "".join(f"/{name} {number} 0 R" for number, name in enumerate(boxes, start=8))
    font = (
        f"/Type3/FontBBox[0 -200 500 800]/FontMatrix[.001 0 0 .001 0 0]/CharProcs<<{procs}>>/ToUnicode 7 0 R"
        "/Encoding<</Differences[1/a/b/c/d]>>/FirstChar 1/LastChar 4/Widths[500 500 500 0]"
    )
    page = f"BT /F1 12 Tf 1 0 0 1 60 700 Tm {drawn} ET"
    assert pdf.read(write_pages(page, font=font, annotations=objects)).text == text


@pytest.mark.parametrize(
    ("drawn", "text"),
    [("17-9", "من 9-17"), ("4567-123-04", "من 04-123-4567"), ("04-123-4567", "من 04-123-4567")],
)
def test_groups_of_digits_behind_arabic_letters_are_read_from_the_right(drawn: str, text: str) -> None:
    cmap = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        "1 beginbfrange <20> <39> <0020> endbfrange 2 beginbfchar <61> <0646> <62> <0645> endbfchar "
        "endcmap end"
    )
    font = f"/Type1/BaseFont/X/FirstChar 32/LastChar 98/Widths[{' 600' * 67}]/ToUnicode 7 0 R"
    stream = f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream"
    page = draw(60, 700, f"{drawn} ab")
    assert pdf.read(write_pages(page, font=font, annotations=[stream])).text == text


def test_letters_beyond_the_first_plane_are_whole() -> None:
    cmap = (
        "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange "
        "1 beginbfchar <78> <D835DC65> endbfchar endcmap end"
    )
    font = "/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode 7 0 R"
    stream = f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream"
    assert pdf.read(write_pages([(60, 700, "x + x")], font=font, annotations=[stream])).text == "x + x"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Rules of the mill", "Rules of the mill"),
        ("Microsoft Word - mill.doc", None),
        ("mill_rules_final.indd", None),
        ("Annual report 2009", None),
        ("", None),
    ],
)
def test_the_title_is_the_one_that_the_text_says(title: str, expected: str | None) -> None:
    assert (
        read([(60, 700, "The rules of the mill: a sack costs four crowns.")], title=title).title == expected
    )


def test_what_is_no_pdf_is_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^it is damaged, or no PDF$"):
        pdf.read(b"%PDF-1.7 and nothing else")

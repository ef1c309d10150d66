"""A Word document says what Word shows, and what is left out is told."""

from __future__ import annotations

import io
import zipfile

import pytest

from hallulab.scenarios.packs.kinds import Extracted, word

SPACES = " ".join(
    f'xmlns:{name}="{address}"'
    for name, address in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "v": "urn:schemas-microsoft-com:vml",
        "w14": "http://schemas.microsoft.com/office/word/2010/wordml",
    }.items()
)


def read(body: str, **parts: str) -> Extracted:
    """Read a document of paragraphs and further parts: `styles="<w:style …"`."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        inner = f"<w:document {SPACES}><w:body>{body}</w:body></w:document>"
        archive.writestr("word/document.xml", inner)
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:{name} {SPACES}>{content}</w:{name}>")
    return word.read(written.getvalue())


def t(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def p(*runs: str, properties: str = "") -> str:
    inner = "".join(run if run.startswith("<") else t(run) for run in runs)
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def item(text: str, level: int = 0, number: int = 1) -> str:
    return p(text, properties=f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def level(at: int, shown: str, kind: str = "decimal", start: int = 1, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{shown}"/>{more}</w:lvl>'
    )


def lists(*levels: str, override: str = "") -> str:
    return (
        f'<w:abstractNum w:abstractNumId="0">{"".join(levels)}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        f'<w:num w:numId="2"><w:abstractNumId w:val="0"/>{override}</w:num>'
    )


def test_numbers_of_paragraphs_are_as_they_are_shown() -> None:
    numbering = lists(
        level(0, "Rule %1.", start=4), level(1, "(%2)", "lowerLetter"), level(2, "%3)", "lowerRoman")
    )
    body = item("Weir") + item("day", 1) + item("one", 2) + item("two", 2) + item("night", 1) + item("Mill")
    body += item("day", 1) + p("As rule 4 says.")
    assert read(body, numbering=numbering).text == (
        "Rule 4. Weir\n(a) day\ni) one\nii) two\n(b) night\nRule 5. Mill\n(a) day\n\nAs rule 4 says."
    )


def test_a_list_begins_anew_where_the_document_says_so() -> None:
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    body = item("rye") + item("oats") + item("barley", number=2) + item("wheat", number=2)
    anew = read(body, numbering=lists(level(0, "%1."), override=again)).text
    on = read(body, numbering=lists(level(0, "%1."))).text
    assert (anew, on) == (
        "1. rye\n2. oats\n1. barley\n2. wheat",
        "1. rye\n2. oats\n3. barley\n4. wheat",
    )


def test_numbers_of_several_levels_and_of_headings_are_shown() -> None:
    linked = '<w:pStyle w:val="berschrift2"/>'
    styles = (
        '<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/>'
        '<w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/>'
        '<w:basedOn w:val="berschrift1"/></w:style>'
    )
    numbering = lists(
        level(0, "%1", "upperRoman", more='<w:pStyle w:val="berschrift1"/>'),
        level(1, "%1.%2", more=linked + "<w:isLgl/>"),
    )
    one, two = '<w:pStyle w:val="berschrift1"/>', '<w:pStyle w:val="berschrift2"/>'
    body = (
        p("Mühle", properties=one) + p("Wehr", properties=one) + p("Zoll", properties=two) + p("Vier Kronen.")
    )
    assert (
        read(body, styles=styles, numbering=numbering).text
        == "# I Mühle\n\n# II Wehr\n\n## 2.1 Zoll\n\nVier Kronen."
    )


def test_bullets_are_a_list() -> None:
    body = item("rye") + item("winter", 1) + item("oats")
    assert read(body, numbering=lists(level(0, "•", "bullet"), level(1, "o", "bullet"))).text == (
        "- rye\n  - winter\n- oats"
    )


def test_a_paragraph_of_style_title_is_the_title() -> None:
    styles = '<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>'
    found = read(p("Rules of the mill", properties='<w:pStyle w:val="Titel"/>') + p("Open."), styles=styles)
    assert (found.title, found.text) == ("Rules of the mill", "# Rules of the mill\n\nOpen.")


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"


def row(*cells: str) -> str:
    return f"<w:tr>{''.join(cells)}</w:tr>"


def test_merged_cells_stand_in_each_of_their_places() -> None:
    wide, first, on = '<w:gridSpan w:val="2"/>', '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    table = (
        row(cell("Grain"), cell("Crowns", wide))
        + row(cell("Rye", first), cell("sack"), cell("4"))
        + row(cell("", on), cell("cart"), cell("30|31"))
        + row(cell("Closed in May", '<w:gridSpan w:val="3"/>'))
    )
    assert read(f"<w:tbl>{table}</w:tbl>").text == (
        "| Grain | Crowns | Crowns |\n| --- | --- | --- |\n| Rye | sack | 4 |\n| Rye | cart | 30\\|31 |\n"
        "| Closed in May |  |  |"
    )


def test_a_table_of_one_column_is_a_frame() -> None:
    assert read(f"<w:tbl>{row(cell('Pay at the gate.'))}</w:tbl>").text == "Pay at the gate."


def test_a_table_in_a_cell_is_one_text() -> None:
    inner = f"<w:tbl>{row(cell('sack'), cell('4'))}{row(cell('cart'), cell('30'))}</w:tbl>"
    outer = row(cell("Grain"), cell("Crowns")) + row(cell("Rye"), f"<w:tc>{inner}{p('')}</w:tc>")
    assert (
        read(f"<w:tbl>{outer}</w:tbl>").text
        == "| Grain | Crowns |\n| --- | --- |\n| Rye | sack, 4; cart, 30 |"
    )


def test_tracked_changes_are_accepted_and_told() -> None:
    body = p(
        "One sack costs ",
        "<w:del><w:r><w:delText>three</w:delText></w:r></w:del>",
        f"<w:ins>{t('four')}</w:ins>",
        " crowns.",
        "<w:r><w:commentReference w:id='0'/></w:r>",
    )
    body += p(f"<w:moveFrom>{t('Pay here.')}</w:moveFrom>") + p(f"<w:moveTo>{t('Pay here.')}</w:moveTo>")
    body += p("Rye ", properties="<w:rPr><w:del/></w:rPr>") + p("and oats.")
    found = read(body)
    assert found.text == "One sack costs four crowns.\n\nPay here.\n\nRye and oats."
    assert found.notes == ("comments are left out (1)", "deletions of tracked changes are left out (1)")


def test_hidden_text_is_left_out_and_told() -> None:
    styles = (
        '<w:style w:type="character" w:styleId="h"><w:name w:val="h"/><w:rPr><w:vanish/></w:rPr></w:style>'
    )
    body = p(
        "Open.",
        t(" not yet", "<w:vanish/>"),
        t(" x", '<w:rStyle w:val="h"/>'),
        t(" Now.", '<w:vanish w:val="0"/>'),
    )
    found = read(body, styles=styles)
    assert (found.text, found.notes) == ("Open. Now.", ("hidden text is left out (3 words)",))


def test_white_text_is_hidden_but_on_a_dark_ground() -> None:
    white = '<w:color w:val="FFFFFF"/>'
    body = p("Open.", t(" unseen", white), t(" Seen.", f'{white}<w:shd w:fill="000000"/>'))
    body += p(t("Dark.", white), properties='<w:shd w:fill="000000"/>')
    body += f"<w:tbl>{row(cell(t('Tool', white)), cell(t('Fee', white)))}</w:tbl>"
    assert read(body).text == "Open. Seen.\n\nDark.\n\n| Tool | Fee |\n| --- | --- |"


def test_paragraphs_of_cells_that_are_rows_are_rows() -> None:
    lines = ("".join(map(p, pair)) for pair in (("Mon", "Tue"), ("9-12", "closed")))
    table = row(cell("Day"), cell("Hours")) + row(*(f"<w:tc>{inner}</w:tc>" for inner in lines))
    assert read(f"<w:tbl>{table}</w:tbl>").text == (
        "| Day | Hours |\n| --- | --- |\n| Mon | 9-12 |\n| Tue | closed |"
    )


def test_a_text_box_is_read_once() -> None:
    box = f"<w:txbxContent>{p('Deposit: six crowns.')}</w:txbxContent>"
    both = (
        f"<mc:AlternateContent><mc:Choice><w:drawing>{box}</w:drawing></mc:Choice>"
        f"<mc:Fallback><w:pict><v:textbox>{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent>"
    )
    assert read(p("Mill.", f"<w:r>{both}</w:r>")).text == "Mill.\n\nDeposit: six crowns."


def test_content_controls_keep_text_and_ticks() -> None:
    def tick(on: int) -> str:
        return (
            f'<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{on}"/></w14:checkbox></w:sdtPr>'
            f"<w:sdtContent>{t('?')}</w:sdtContent></w:sdt>"
        )

    asked = (
        f"<w:sdt><w:sdtPr><w:showingPlcHdr/></w:sdtPr><w:sdtContent>{t('Click here')}</w:sdtContent></w:sdt>"
    )
    body = f"<w:sdt><w:sdtContent>{p('Open.')}</w:sdtContent></w:sdt>" + p(
        tick(1), " rye ", tick(0), " oats", asked
    )
    assert read(body).text == "Open.\n\n☒ rye ☐ oats"


def mark(kind: str, inner: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'


def test_fields_keep_their_results() -> None:
    ticked = '<w:ffData><w:checkBox><w:default w:val="0"/><w:checked/></w:checkBox></w:ffData>'
    entries = '<w:listEntry w:val="rye"/><w:listEntry w:val="oats"/>'
    chosen = f'<w:ffData><w:ddList><w:result w:val="1"/>{entries}</w:ddList></w:ffData>'
    body = p(
        "Pay ",
        f'<w:fldSimple w:instr=" MERGEFIELD fee ">{t("40 crowns")}</w:fldSimple>',
        ", see ",
        mark("begin"),
        "<w:r><w:instrText>REF a</w:instrText></w:r>",
        mark("separate"),
        "Rule 7",
        mark("end"),
        " ",
        mark("begin", ticked) + mark("end"),
        " ",
        mark("begin", chosen) + mark("end"),
    )
    assert read(body).text == "Pay 40 crowns, see Rule 7 ☒ oats"


def test_notes_stand_at_the_end() -> None:
    body = p(
        "A sack costs 40",
        '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r>',
        " crowns",
        '<w:r><w:endnoteReference w:id="2"/></w:r>',
        ".",
    )
    notes = '<w:{0} w:id="0">' + p("—") + '</w:{0}><w:{0} w:id="2">' + p("{1}") + "</w:{0}>"
    found = read(
        body,
        footnotes=notes.format("footnote", "Widows pay half."),
        endnotes=notes.format("endnote", "Since May."),
    )
    assert found.text == "A sack costs 40 [1] crowns [2].\n\n[1] Widows pay half.\n\n[2] Since May."


def test_signs_and_superscripts_keep_what_they_show() -> None:
    raised = '<w:vertAlign w:val="superscript"/>'
    body = p(
        "10", t("3", raised), " kg, the 1", t("st", raised), " H",
        t("2", '<w:vertAlign w:val="subscript"/>'), "O ",
        '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/><w:sym w:font="Symbol" w:char="F0B3"/></w:r>',
        '<w:r><w:sym w:font="Webdings" w:char="F041"/></w:r>',
        " long", "<w:r><w:noBreakHyphen/></w:r>", "term of\u00adfice",
        "<w:r><w:softHyphen/><w:tab/><w:t>5</w:t><w:br/><w:t>6</w:t></w:r>",
    )  # fmt: skip
    found = read(body)
    assert found.text == "10^3 kg, the 1st H2O ✓≥ long-term office\t5\n6"
    assert found.notes == ("a symbol of the font Webdings is left out (F041)",)


def test_text_in_other_elements_is_kept() -> None:
    ruby = f"<w:r><w:ruby><w:rt>{t('とう')}</w:rt><w:rubyBase>{t('東')}</w:rubyBase></w:ruby></w:r>"
    body = p(
        f"<w:smartTag>{t('Mill')}</w:smartTag>",
        f'<w:bdo w:val="rtl">{t(" road ")}</w:bdo>',
        f'<w:hyperlink w:anchor="a">{t("map ")}</w:hyperlink>',
        ruby,
        t(" three", "<w:strike/>"),
    )
    assert read(body).text == "Mill road map 東(とう) ~~three~~"


def test_equations_are_one_line() -> None:
    def r(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    body = p(
        f"<m:oMath>{r('A=')}<m:f><m:num>{r('a+b')}</m:num><m:den>{r('2')}</m:den></m:f>{r('+')}"
        f"<m:sSup><m:e>{r('x')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>{r('+')}"
        f"<m:rad><m:e>{r('y+1')}</m:e></m:rad>{r('+')}<m:d><m:e>{r('k')}</m:e></m:d>"
        f'<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>{r("i=1")}</m:sub><m:sup>{r("n")}</m:sup>'
        f"<m:e>{r('i')}</m:e></m:nary></m:oMath>",
        " sacks",
    )
    assert read(body).text == "A=(a+b)/2+x^2+√(y+1)+(k)∑_(i=1)^n i sacks"


def test_a_fraction_behind_a_number_is_no_part_of_it() -> None:
    half = "<m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
    body = p("Take 2", f"<m:oMath>{half}</m:oMath>", " cups or ") + p(
        f"<m:oMath><m:r><m:t>3</m:t></m:r>{half}</m:oMath>"
    )
    assert read(body).text == "Take 2 1/2 cups or\n\n3 1/2"


def test_headers_and_pictures_are_told() -> None:
    found = read(
        p("Open.", "<w:r><w:drawing><w:blip/></w:drawing></w:r>"),
        header=p("Rules of the mill"),
        footer=p("3"),
    )
    assert found == Extracted(
        "Open.", None, ("the header is left out: Rules of the mill", "pictures are left out (1)")
    )


def test_an_old_or_locked_document_is_one_sentence() -> None:
    with pytest.raises(ValueError, match=r"^it has a password, or is of Word before 2007"):
        word.read(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))

"""What tables, workbooks, slides, e-mails, books, RTF, ODT and RST yield beside the twenty documents."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, datetime, time, timedelta

import pytest
from openpyxl import Workbook
from openpyxl.styles import Font, PatternFill

from hallulab.scenarios.packs.kinds import (
    Extracted,
    epub,
    mail,
    number_formats,
    open_document,
    rst,
    rtf,
    slides,
    table_text,
    workbook,
)
from tests.scenarios.packs.all_kinds import add_part, build_document, replace_in

SHEET = "xl/worksheets/sheet3.xml"
PICTURE = ("</p:spTree>", "<p:pic><a:blip/></p:pic></p:spTree>")
TABLE = "| Tool | Fee |\n| --- | --- |\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"Tool,Fee\nDrill,5\n", f"{TABLE}| Drill | 5 |"),
        (b"\xef\xbb\xbfTool;Fee\r\nDrill;5\r\n", f"{TABLE}| Drill | 5 |"),
        ("Tool\tFee\nDrill\t5\n".encode("utf-16"), f"{TABLE}| Drill | 5 |"),
        (b'"Tool"|"Fee"\n"Drill"|"5"\n', f"{TABLE}| Drill | 5 |"),
        (b"sep=~\nTool~Fee\nDrill~5", f"{TABLE}| Drill | 5 |"),
        (b"Tool,Fee\na|b,5\n", f"{TABLE}| a\\|b | 5 |"),
        (b"Fees\n\nTool;Fee\nDrill;4,50\nSaw;6,00\n", f"Fees\n\n{TABLE}| Drill | 4,50 |\n| Saw | 6,00 |"),
        (b'Tool,Fee\n"Day\nWeek","4\n9"\n', f"{TABLE}| Day | 4 |\n| Week | 9 |"),
        (b"Fees,Fees\n,\nTool,Fee\nDrill,5\n", f"Fees\n\n{TABLE}| Drill | 5 |"),
        (
            b"Tool,Price,Price\n,Day,Week\nDrill,5,9\n",
            "| Tool | Price Day | Price Week |\n| --- | --- | --- |\n| Drill | 5 | 9 |",
        ),
        (b"Tool;Fee\nDrill;4,50\nSaw;6,00\n", f"{TABLE}| Drill | 4,50 |\n| Saw | 6,00 |"),
        (b"Fees of 2026,\n,\nTool,Fee\nDrill,5\n", f"Fees of 2026\n\n{TABLE}| Drill | 5 |"),
        (b"Tool,Fee\nDrill,5\n,\nSaw,6\n", f"{TABLE}| Drill | 5 |\n| Saw | 6 |"),
        (
            b"Tool,Fee\nDrill,5\n,\nLate,Price\nday,2\n",
            f"{TABLE}| Drill | 5 |\n\n| Late | Price |\n| --- | --- |\n| day | 2 |",
        ),
        (
            b"Tool,Fee\nDrill,5,new\nSaw\n",
            "| Tool | Fee | |\n| --- | --- | --- |\n| Drill | 5 | new |\n| Saw | | |",
        ),
    ],
)
def test_a_table_is_read_with_any_usual_separator_and_encoding(content: bytes, text: str) -> None:
    assert table_text.read(content).text == text


def test_another_encoding_of_a_table_is_told() -> None:
    found = table_text.read(build_document("gebuehren.csv"))
    assert found.notes == ("is not UTF-8, and was read as windows-1252",)


@pytest.mark.parametrize("content", [b"PK\x03\x04\xff", b"%PDF-1.7 \xff", bytes(range(256))])
def test_what_is_no_text_is_no_table(content: bytes) -> None:
    with pytest.raises(ValueError, match="it is no text, but a file of another kind"):
        table_text.read(content)


def test_a_table_of_many_empty_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="a table has more than 10,000,000 cells, with the empty ones"):
        table_text.read(b"a\n" * 4000 + b"," * 4000 + b"x")


LAKHS = "[>=10000000]##\\,##\\,##\\,##0;[>=100000]##\\,##\\,##0;##,##0"


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (1250.5, "General", "1250.5"),
        (0.1 + 0.2, "General", "0.3"),
        (123456789012, "General", "123456789012"),
        (1e-12, "General", "1E-12"),
        (1250.5, "#,##0.00", "1,250.50"),
        (1250.5, '#,##0.00\\ "€"', "1,250.50 €"),
        (-1250.5, '#,##0.00\\ "€";[Red]-#,##0.00\\ "€"', "-1,250.50 €"),
        (-3, "0;(0)", "(3)"),
        (0, '0;-0;"none"', "none"),
        (0, '_-* #,##0.00_-;-* #,##0.00_-;_-* "-"??_-;_-@_-', "-"),
        (1200, "[$$-409]#,##0", "$1,200"),
        (0.0833, "0.0%", "8.3%"),
        (0.125, "0%", "13%"),
        (7, "000", "007"),
        (0.5, "#.##", ".5"),
        (60, '[<50]"low";[>=50]"high"', "high"),
        (125000, LAKHS, "1,25,000"),
        (12345678, LAKHS, "1,23,45,678"),
        (999, LAKHS, "999"),
        (8005550199, "(000) 000-0000", "(800) 555-0199"),
        (2.5, "# ?/?", "2 1/2"),
        (-0.75, "# ??/??", "-3/4"),
        (0.3125, "# ?/16", "5/16"),
        (3, "# ?/?", "3"),
        (0, "# ?/?", "0"),
        (2.50, "0.##", "2.5"),
        (1234567, '0.0,,"M"', "1.2M"),
        (123456, "0.00E+00", "1.23E+5"),
        (-0.001, "0.00", "0.00"),
        (True, "General", "TRUE"),
        (None, "0.00", ""),
        ("00501", "0.00", "00501"),
        (date(2026, 3, 1), "mm-dd-yy", "2026-03-01"),
        (datetime(2026, 3, 1), "mm-dd-yy", "2026-03-01"),
        (datetime(2026, 3, 1), "dd/mm/yyyy;@", "01/03/2026"),
        (datetime(2026, 3, 1), "[$-409]d\\ mmmm\\ yyyy", "1 March 2026"),
        (datetime(2026, 3, 1, 14, 5), "d.m.yy h:mm", "1.3.26 14:05"),
        (datetime(2026, 3, 1, 14, 5), "h:mm AM/PM", "2:05 PM"),
        (time(9, 30), "hh:mm", "09:30"),
        (timedelta(hours=30, minutes=5), "[h]:mm", "30:05"),
    ],
)
def test_a_value_is_written_as_its_format_shows_it(value: object, code: str, shown: str) -> None:
    assert number_formats.show(value, code) == shown


def test_a_workbook_says_what_it_hides_and_what_was_not_computed() -> None:
    formula = ('<c r="A4"><v>2025</v></c>', '<c r="A4"><f>1+1</f></c>')
    content = replace_in("budget.xlsx", SHEET, formula)
    found = workbook.read(content)
    assert found.notes == (
        "hidden rows and columns of the sheet Budget 2026 were left out: 2",
        "the sheet Internal is hidden and was left out",
        "formulas without a saved value: 1; open and save it to compute them",
    )
    assert found.text.endswith("| | March (closed) | | |")


def test_a_cell_far_away_makes_no_rows_between() -> None:
    far = '<row r="1048576"><c r="D1048576"><v>7</v></c></row></sheetData>'
    found = workbook.read(replace_in("budget.xlsx", SHEET, ("</sheetData>", far)))
    assert found.text.endswith("| 2025 | March (closed) | | |\n| | | | 7 |")


def test_white_text_of_a_workbook_is_left_out() -> None:
    book, written = Workbook(), io.BytesIO()
    for row in (["Tool", "Fee"], ["Drill", 5], ["Saw", 6]):
        book.active.append(row)
    for cell in (*book.active[1], *book.active[3]):
        cell.font = Font(color="FFFFFFFF")
    for cell in book.active[1]:
        cell.fill = PatternFill("solid", fgColor="FF000000")
    book.save(written)
    assert workbook.read(written.getvalue()).text.endswith(f"{TABLE}| Drill | 5 |")


def test_hidden_shapes_are_left_out() -> None:
    shapes = "".join(
        f'<p:sp><p:nvSpPr><p:cNvPr id="9" name="x"{more}/></p:nvSpPr>'
        f"<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"
        for more, text in ((' hidden="1"', "unseen"), ("", "shown"))
    )
    part = "ppt/slides/slide3.xml"
    said = slides.read(replace_in("training.pptx", part, ("</p:spTree>", f"{shapes}</p:spTree>"))).text
    assert ("unseen" in said, "shown" in said) == (False, True)


def test_hidden_slides_are_left_out_and_told() -> None:
    assert "Questions" in slides.read(build_document("training.pptx")).text
    hidden = replace_in("training.pptx", "ppt/slides/slide3.xml", ("<p:sld ", '<p:sld show="0" '))
    found = slides.read(hidden)
    assert "Questions" not in found.text
    assert found.notes == ("slide 4 is hidden and was left out",)


MAIL = b"From: Ana <ana@x.example>\nSubject: Fees\nContent-Type: %b; charset=%b\n\n%b"


@pytest.mark.parametrize(
    ("kind", "charset", "body", "text"),
    [
        (b"text/plain", b"iso-8859-1", b"\x80 5 f\xfcr", "€ 5 für"),
        (b"text/plain", b"no-such-charset", b"5 \xe2\x82\xac", "5 €"),
        (b"text/html", b"utf-8", b"<p>5 &euro;</p><img src='http://x.example/a.png'>", "5 €"),
    ],
)
def test_the_text_of_an_email_is_decoded(kind: bytes, charset: bytes, body: bytes, text: str) -> None:
    found = mail.read(MAIL % (kind, charset, body))
    assert (found.title, found.text) == ("Fees", f"From: Ana <ana@x.example>\n\n{text}")


def test_signature_quotation_and_attachments_of_an_email_are_told() -> None:
    found = mail.read(MAIL % (b"text/plain", b"utf-8", b"Yes.\n\n> May I?\n> Ana\n-- \nBob, Tool shed\n"))
    assert found.text.endswith("Yes.\n\n> May I?\n> Ana")
    assert found.notes == ("its signature was left out", "lines that it quotes from an earlier message: 2")
    assert mail.read(build_document("notice.eml")).notes == (
        "its attachment fees 2026.pdf was not read",
        "its attachment notes.txt was not read",
    )


@pytest.mark.parametrize(
    ("more", "body", "text"),
    [
        ("", b"Within \n30 days.\n\n From May.\n", "Within 30 days.\n\nFrom May."),
        ("; delsp=yes", b"The num \nber 5.\n", "The number 5."),
    ],
)
def test_lines_that_flow_are_joined(more: str, body: bytes, text: str) -> None:
    found = mail.read(MAIL % (b"text/plain", f"utf-8; format=flowed{more}".encode(), body))
    assert found.text == f"From: Ana <ana@x.example>\n\n{text}"


def test_the_page_of_an_email_whose_text_is_empty_is_read() -> None:
    parts = "".join(
        f"--x\nContent-Type: text/{kind}\n\n{body}\n"
        for kind, body in (("plain", " "), ("html", "<p>5 euros"))
    )
    head = "Subject: Fees\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=x\n\n"
    assert mail.read(f"{head}{parts}--x--\n".encode()).text == "5 euros"


def test_an_email_without_text_is_refused() -> None:
    with pytest.raises(ValueError, match="it has no text: it may be encrypted, or hold attachments only"):
        mail.read(MAIL % (b"application/pkcs7-mime", b"utf-8", b"AAAA"))


def test_chapters_that_are_missing_are_told() -> None:
    package = "OEBPS/content.opf"
    found = epub.read(replace_in("handbook.epub", package, ("text/b.xhtml", "text/c.xhtml")))
    assert found.notes == ("OEBPS/text/c.xhtml was not read: it is missing, or no page",)
    assert "# Honey" in found.text
    assert "The year of the bees" not in found.text


def test_encrypted_chapters_are_refused() -> None:
    keys = '<e><CipherReference URI="OEBPS/text/b.xhtml"/></e>'
    with pytest.raises(ValueError, match="its chapters are encrypted"):
        epub.read(add_part("handbook.epub", "META-INF/encryption.xml", keys))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (rb"{\rtf1\ansi Fee {\b 5} \'80\par}", "Fee 5 €"),
        (rb"{\rtf1\ansi\ansicpg1251 \'cf\'eb\'e0\'f2\'e0\par}", "Плата"),
        (rb"{\rtf1{\fonttbl{\f0 A;}{\f1\fcharset128 B;}}\f1 \'8b\'e0 5\par}", "金 5"),
        (rb"{\rtf1\uc2 5 \u8364\'a2\'e3 \u-10179??\u-8704??\par}", "5 € 😀"),
        (rb"{\rtf1 a{\v b}c{\deleted d}\par}", "ac"),
        (rb"{\rtf1 {\strike 8} 5 {\strike0 euros}{\striked1 x}\par}", "5 euros"),
        (rb"{\rtf1 {\*\unknown x}{\pict 0102}{\header h\par}a\bin3 }}}b\par}", "ab"),
        (rb"{\rtf1 {\listtext 3.\tab}Pay\par{\listtext 4.\tab}Go\par}", "3. Pay\n\n4. Go"),
        (rb"{\rtf1 {\stylesheet{\s7 Heading 2;}}\s7 Fees\par\pard Five.\par}", "## Fees\n\nFive."),
        (rb"{\rtf1 \trowd\cellx1\cellx2 a\cell b\cell\row\trowd\clvmrg\cellx1\cellx2 \cell c\cell\row}",
         "| a | b |\n| --- | --- |\n| a | c |"),
        (rb"{\rtf1 \intbl a\cell\row\pard\par\intbl b\cell\row}", "| a |\n| --- |\n\n| b |\n| --- |"),
    ],
)  # fmt: skip
def test_rtf_yields_its_text(source: bytes, text: str) -> None:
    assert rtf.read(source).text.strip().replace("\\", "") == text


def test_struck_text_is_left_out() -> None:
    struck = ('text:display="none"', 'style:text-line-through-style="solid"')
    assert "hidden" not in open_document.read(replace_in("report.odt", "content.xml", struck)).text
    run = "<a:r><a:t>Questions"
    old = (run, f'<a:r><a:rPr strike="sngStrike"/><a:t>Old</a:t></a:r>{run}')
    assert "Old" not in slides.read(replace_in("training.pptx", "ppt/slides/slide3.xml", old)).text
    book, held = Workbook(), io.BytesIO()
    for cells in (["Tool", "Fee", "New"], ["Saw", 8, 5]):
        book.active.append(cells)
    book.active["B2"].font = Font(strike=True)
    book.save(held)
    assert workbook.read(held.getvalue()).text.endswith("| Saw | | 5 |")


def test_what_is_no_rtf_is_refused() -> None:
    with pytest.raises(ValueError, match="it does not begin as RTF does"):
        rtf.read(b"Hello")


def test_a_table_that_stands_a_million_times_is_refused() -> None:
    row = "<table:table-row{}><table:table-cell><text:p>Bank<"
    repeated = row.format(' table:number-rows-repeated="1000000"')
    content = replace_in("report.odt", "content.xml", (row.format(""), repeated))
    with pytest.raises(ValueError, match="a part of a table stands 1,000,000 times, more than 1,000"):
        open_document.read(content)


def test_directives_that_are_not_read_are_told() -> None:
    found = rst.read(b"Fees\n====\n\n.. toctree::\n\n   a\n\n.. include:: /etc/passwd\n\nFive :ref:`a`.\n")
    assert found.title == "Fees"
    assert found.notes == ("its directive toctree was not read", "its directive include was not read")
    assert found.text.strip().endswith("Five :ref:`a`.")


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (rtf.read, rb"{\rtf1 a{\*\shppict{\pict 00}}{\nonshppict{\pict 00}}b\par}"),
        (rst.read, b"Five.\n\n.. image:: a.png\n"),
        (open_document.read, build_document("report.odt")),
        (workbook.read, add_part("budget.xlsx", "xl/charts/chart1.xml", "<c/>")),
        (slides.read, replace_in("training.pptx", "ppt/slides/slide3.xml", PICTURE)),
    ],
)
def test_pictures_are_told(read: Callable[[bytes], Extracted], content: bytes) -> None:
    assert read(content).notes[-1] == "pictures, charts and equations are left out (1)"

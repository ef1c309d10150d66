"""HTML pages are read as a browser shows them, without what surrounds their text."""

from __future__ import annotations

import pytest

from hallulab.scenarios.packs.kinds import html


def read(body: str) -> list[str]:
    """Return the lines of a page that are not empty."""
    return [line for line in html.read(f"<title>T</title><body>{body}").text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>It costs 50<sup>1</sup> euros.<p><sup>1</sup> Pupils pay half.", "It costs 50 [1] euros."),
        ("<p>It costs 50<sup><a href='#n'>1</a></sup> euros.", "It costs 50 [1] euros."),
        ("<p>It costs 50<sup>[1]</sup> euros.", "It costs 50 [1] euros."),
        ("<p>It carries 10<sup>3</sup> kg on 4 m<sup>2</sup>.", "It carries 10^3 kg on 4 m^2."),
        ("<p>4 m<sup>2</sup> for 9<sup>2</sup> euros.<p><sup>2</sup> A year.", "4 m^2 for 9 [2] euros."),
        ("<p>10<sup>-6</sup> and 2<sup>n</sup>", "10^-6 and 2^n"),
        ("<p>The 1<sup>st</sup> of May", "The 1st of May"),
        ("<p>H<sub>2</sub>O and CO<sub>2</sub>", "H2O and CO2"),
        ("<p>log<sub>2</sub>8 and x<sub>i</sub>", "log_2 8 and x_i"),
        ("<p>In 2019<a epub:type=noteref>1</a> it was 1", "In 2019 [1] it was 1"),
        ("<p>In 2019<a role=doc-noteref>1</a> it was 1", "In 2019 [1] it was 1"),
        ("<p><sup>1</sup>⁄<sub>2</sub> cup or 1<sup>1</sup>/<sub>2</sub> cups", "1⁄2 cup or 1 1/2 cups"),
        (
            "<p>€4<sup>50</sup> or <b>4</b><sup>50</sup> zł a day, 4<sup>50</sup>",
            "€4.50 or 4.50 zł a day, 4^50",
        ),
        ("<math><msqrt><mn>2</mn></msqrt><msqrt><mi>a</mi><mo>+</mo><mn>1</mn></msqrt></math>", "√2√(a+1)"),
        (
            "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>",
            "(a+b)/2",
        ),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac><msup><mi>x</mi><mn>2</mn></msup></math>", "1/2x^2"),
        ("2<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> cups", "2 1/2 cups"),
        ("<math><mn>2</mn><mfrac><mn>1</mn><mn>2</mn></mfrac></math>", "2 1/2"),
    ],
)
def test_raised_and_lowered_numbers_keep_their_distance(body: str, text: str) -> None:
    assert read(body)[0] == text


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("<ol start=4><li>A<li>B</ol>", ["4. A", "5. B"]),
        ("<ol type=a><li>A<li>B</ol>", ["a. A", "b. B"]),
        ("<ol style='list-style-type: upper-roman'><li>A<li value=4>B</ol>", ["I. A", "IV. B"]),
        ("<ol reversed><li>A<li>B</ol>", ["2. A", "1. B"]),
        ("<ol><li>A<ol type=i><li>B</ol></ol>", ["1. A", "   i. B"]),
        ("<ul><li>A<li>B</ul>", ["* A", "* B"]),
    ],
)
def test_lists_keep_their_numbers(body: str, lines: list[str]) -> None:
    assert read(body) == lines


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (
            "<tr><th rowspan=2>Tool<th colspan=2>Price<tr><th>Day<th>Week"
            "<tr><td rowspan=2>Saw<td>1<td>5<tr><td>2<td>9",
            [
                "| Tool | Price Day | Price Week |",
                "| --- | --- | --- |",
                "| Saw | 1 | 5 |",
                "| Saw | 2 | 9 |",
            ],
        ),
        ("<tr><td>a|b<td>c", ["| a\\|b | c |", "| --- | --- |"]),
        (
            "<thead><tr><th>A<th>B<tbody><tr><th colspan=2>In summer<tr><th>C<td>1<br>2",
            ["| A | B |", "| --- | --- |", "| In summer |  |", "| C | 1 2 |"],
        ),
        (
            "<tr><th>Day<th>Hours<tr><td>Mon<br>Tue<td>9-12<br>closed",
            ["| Day | Hours |", "| --- | --- |", "| Mon | 9-12 |", "| Tue | closed |"],
        ),
        (
            "<tr><th>A<th>B<th>C<tr><td>Saw<td><p>Day<p>Week<td><p>4<p>9",
            ["| A | B | C |", "| --- | --- | --- |", "| Saw | Day | 4 |", "| Saw | Week | 9 |"],
        ),
        (
            "<tr><th>A<br>x<th>B<br>1<tr><td>Cordless<br>drill<td>4 euros<br>a day",
            ["| A x | B 1 |", "| --- | --- |", "| Cordless drill | 4 euros a day |"],
        ),
        ("<caption>Fees</caption><tr><th>A<tr><td>1", ["Fees", "| A |", "| --- |", "| 1 |"]),
        ("<tr><td rowspan=x>a<tr><td>b", ["| a |", "| --- |", "| b |"]),
        ("<tr><td>a<td><table><tr><td>b<td>c</table>", ["a", "| b | c |", "| --- | --- |"]),
    ],
)
def test_the_cells_of_a_table_stay_in_their_columns(body: str, lines: list[str]) -> None:
    assert read(f"<table>{body}</table>") == lines


@pytest.mark.parametrize(
    "hidden",
    [
        *(f"<{tag}>x</{tag}>" for tag in ("nav", "footer", "aside", "del", "script", "template", "button")),
        *(f"<div {about}>x</div>" for about in ("class='cookie-banner'", "id=cookie", "role=navigation")),
        *(f"<div {about}>x</div>" for about in ("id=onetrust-banner-sdk", "class='cc-window cc-theme'")),
        *(
            f"<p {about}>x</p>"
            for about in (
                "hidden",
                "style='color: red; display: none'",
                "style='text-decoration: line-through'",
                "style='position: absolute; left: -9999px'",
                "style='color: #fff'",
                "style='font-size:0'",
                "style='display: none !important'",
            )
        ),
        "<!-- x -->",
    ],
)
def test_what_is_hidden_or_stands_around_the_text_is_left_out(hidden: str) -> None:
    assert read(f"<p>A saw.</p>{hidden}<p>A drill.</p>") == ["A saw.", "A drill."]


@pytest.mark.parametrize(
    "question", ["<h2><button>How long?</button></h2>", "<button aria-expanded=false>How long?</button>"]
)
def test_a_question_that_opens_its_answer_is_text(question: str) -> None:
    assert read(f"{question}<div>Seven days.</div><button>Send</button>")[0].endswith("How long?")
    assert read(f"{question}<div>Seven days.</div><button>Send</button>")[1:] == ["Seven days."]


def test_boxes_that_only_styles_part_are_parted() -> None:
    assert read("<p><span class=a>Monday</span><span class=b>closed</span></p>") == ["Monday closed"]
    assert read("<p><span class=a>F</span><span class=a>ee</span>, <span>1</span><span>2</span></p>") == [
        "Fee, 12"
    ]
    cells = "<span role=cell>Saw</span><span role=cell>3</span>"
    heads = cells.replace("cell", "columnheader").replace("Saw", "Tool").replace(">3", ">Fee")
    table = f"<div role=table><div role=row>{heads}</div><div role=row>{cells}</div></div>"
    assert read(table) == ["| Tool | Fee |", "| --- | --- |", "| Saw | 3 |"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<style>.x{display:none}</style><p class=x>no</p><p>A saw.</p>", ["A saw."]),
        ("<style>#x{visibility:hidden}</style><p id=x>no</p><p>A saw.</p>", ["A saw."]),
        (
            "<style>.a .x, p>i{display:none}</style><p class=a>A saw<b class=x>no</b>.<i>no</i></p>",
            ["A saw."],
        ),
        (
            "<style>.x{display:none} p.x.on{display:block}</style><p class='x on'>A saw.<p class=x>no",
            ["A saw."],
        ),
        ("<style>.x{display:none}</style><p class=x style='display:block'>A saw.</p>", ["A saw."]),
        ("<style>.x{display:none!important}</style><p class=x style='display:block'>n</p>A saw.", ["A saw."]),
        ("<style>@media print{.x{display:none}}</style><p class=x>A saw.</p>", ["A saw."]),
        (
            "<style>.x{display:none}@media (max-width:600px){.x{display:block}}</style>"
            "<p class=x>no</p><p>A saw.</p>",
            ["A saw."],
        ),
        (
            "<style>.x:not(.on),a[href='y'],p:nth-of-type(3){display:none}</style>"
            "<p class=x>no<p>A saw.<p>no<p><a href=y>no</a>",
            ["A saw."],
        ),
        ("<style>/*.x{display:none}*/.y{display:none}</style><p class=x>A saw.<p class=y>no", ["A saw."]),
        ("<style>}} .y{display</style><p class=y>A saw.", ["A saw."]),
        ("<style>.old{text-decoration:line-through}</style><p><b class=old>9</b> 5 euros", ["5 euros"]),
        ("<style>.app{display:none}</style><div class=app>A saw.</div>", ["A saw."]),
        ("<div style='background:#123'><p style='color:white'>A saw.</p></div>", ["A saw."]),
        ("<div style='font-size:0'><b style='font-size:1em'>A saw.</b></div>", ["A saw."]),
        ("<p><span aria-hidden=true>A saw.</span></p>", ["A saw."]),
        ("<p><i class=material-icons aria-hidden=true>home</i>A saw.</p>", ["A saw."]),
        ("<p><b class=a-offscreen>$12.99</b><b aria-hidden=true>$12<sup>99</sup></b></p>", ["$12.99"]),
    ],
)
def test_the_styles_of_a_page_say_what_is_shown(page: str, said: list[str]) -> None:
    assert read(page) == said


@pytest.mark.parametrize(
    "page",
    [
        "<h3><button aria-controls=a>How long?</button></h3><div id=a hidden>Seven days.</div>",
        "<style>.panel{display:none}</style><button class=accordion>How long?</button><p class=panel>Seven days.",  # noqa: E501
        "<style>.a{display:none}</style><div class=faq-q>How long?</div><div class=a>Seven days.</div>",
        "<details><summary>How long?</summary>Seven days.</details>",
        "<p>How long?</p><div role=tabpanel hidden>Seven days.</div>",
    ],
)
def test_an_answer_that_a_click_opens_is_text(page: str) -> None:
    assert [line.lstrip("# ") for line in read(page)] == ["How long?", "Seven days."]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("<input value='4'>", "Fee: 4"),
        ("<input type=number value=4> euros", "Fee: 4 euros"),
        ("<input type=hidden value=9><input type=password value=x><input type=submit value=Send>", "Fee:"),
        ("<input type=radio checked> 4", "Fee: ☒ 4"),
        ("<input type=checkbox> 4", "Fee: ☐ 4"),
        ("<select><option>9<option selected>4</select>", "Fee: 4"),
        ("<input list=l value=4><datalist id=l><option>9</datalist>", "Fee: 4"),
    ],
)
def test_a_field_says_what_it_shows(field: str, said: str) -> None:
    assert read(f"<p>Fee: {field}</p>") == [said]


def test_a_list_without_a_choice_says_all_that_one_can_choose() -> None:
    assert read("<select><option value='' selected>Size</option><option>S<option>M</select>") == [
        "Size",
        "S",
        "M",
    ]


@pytest.mark.parametrize("about", ["epub:type=footnote", "role=doc-footnote", "class='note warning'"])
def test_a_note_of_a_page_is_text(about: str) -> None:
    assert read(f"<p>A saw.</p><aside {about}>From May on.</aside>") == ["A saw.", "From May on."]


@pytest.mark.parametrize(
    "mark",
    [
        "<a class=headerlink href='#fees'>¶</a>", "<a href='#fees'>#</a>", "<a href='#fees'>\u200b</a>",
        "<span class=mw-editsection>[<a>edit</a>]</span>",
    ],
)  # fmt: skip
def test_a_mark_for_the_address_of_a_heading_is_no_text(mark: str) -> None:
    assert html.read(f"<h1>Fees{mark}</h1><p>2 euros").title == "Fees"


def test_the_main_part_of_a_page_is_read_alone_with_its_asides() -> None:
    page = "<header><h2>Menu</h2></header><main><h1>Loans</h1><aside>Mind the blade.</aside></main>End"
    assert read(page) == ["# Loans", "Mind the blade."]


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>Fees - Shed</title><h2>Menu</h2><h1>Loans</h1>A saw.", "Loans"),
        ("<title> Fees -\nShed</title><h2>Late</h2>A saw.", "Fees - Shed"),
        ("<p>A saw.", None),
        ("<h1>Fees<p>A saw.</h1>", "Fees"),
        ("<svg><title>Logo</title></svg><p>A saw.", None),
    ],
)
def test_the_title_is_the_first_heading_of_the_text_or_that_of_the_page(page: str, title: str | None) -> None:
    assert html.read(page).title == title


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("<p>A saw<p>A drill<ul><li>one<li>two</ul>", ["A saw", "A drill", "* one", "* two"]),
        ("<h1>Fees<p>A saw</h1><p>A drill", ["# Fees", "A saw", "A drill"]),
        ("<pre># a\n```\nb</pre>", ["````", "# a", "```", "b", "````"]),
        ("<dl><dt>Deposit<dd>20 euros</dl>", ["Deposit", ":   20 euros"]),
        ("<p>&#150; &#128; wo<wbr>rd", ["– € word"]),
        ("<select><option>A<option>B</select><textarea>typed</textarea>", ["A", "B", "typed"]),
    ],
)
def test_pages_are_read_as_browsers_read_them(body: str, lines: list[str]) -> None:
    assert read(body) == lines


def test_an_empty_element_of_xhtml_holds_nothing() -> None:
    page = '<?xml version="1.0"?><html><head><script src="a"/><title/></head><body><p>A saw.</p></body>'
    assert html.read(page).text.strip() == "A saw."


TEXT = "Für £30 – oder €35 – „günstig“."


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (f"<meta charset=iso-8859-1><p>{TEXT}".encode("cp1252"), ()),
        (f"<meta http-equiv=x content='text/html; charset=us-ascii'><p>{TEXT}".encode("cp1252"), ()),
        (f"<meta charset=iso-8859-1><p>{TEXT}".encode(), ()),
        (f"<p>{TEXT}".encode("cp1252"), ("declares no encoding, and was read as windows-1252",)),
        (f"\ufeff<meta charset=iso-8859-1><p>{TEXT}".encode("utf-16-le"), ()),
        (f'<?xml version="1.0" encoding="windows-1252"?><p>{TEXT}'.encode("cp1252"), ()),
    ],
)
def test_the_encoding_is_that_which_browsers_find(content: bytes, notes: tuple[str, ...]) -> None:
    found = html.read(content)
    assert (found.text.strip().split("\n")[-1], found.notes) == (TEXT, notes)

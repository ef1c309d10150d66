from __future__ import annotations

import pytest

from hallulab.simulator.compare.markdown import LONGEST, escape_markdown, render_markdown
from hallulab.simulator.compare.runs import compare_runs
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.compare.texts import add_texts
from hallulab.simulator.records.folder import RunFolder
from tests.simulator.compare.made import found


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("Rs 500 (a fee), 3.5%.", "Rs 500 (a fee), 3.5%."),
        ("<b>&amp;", "&#60;b&#62;&#38;amp;"),
        ("[x](https://a.b)", "&#91;x&#93;(https&#58;//a.b)"),
        ("www.a.b", "www&#46;a.b"),
        ("a | b\n\n# c", "a &#124; b &#35;&#8288; c"),
        ("@all #12", "&#64;&#8288;all &#35;&#8288;12"),
        (
            "**a** _b_ `c` ~d~ $e$ \\",
            "&#42;&#42;a&#42;&#42; &#95;b&#95; &#96;c&#96; &#126;d&#126; &#36;e&#36; &#92;",
        ),
        ("- a", "&#45; a"),
        ("-0.5", "-0.5"),
        ("\x1b[0m\u202e", "�&#91;0m�"),
    ],
)
def test_texts_stay_texts(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


def test_a_comment_has_sentences_changed_turns_and_folded_tables(
    demo_replay: RunFolder, changed_demo: RunFolder
) -> None:
    folders = [demo_replay, changed_demo]
    text = render_markdown(add_texts(compare_runs([summarize_run(one) for one in folders]), folders))
    lines = text.splitlines()
    assert lines[0] == "### hallulab: B (after) beside A (demo)"
    assert lines[3] == (
        "- Hallucinated turns: 0 new, 2 gone, 1 worse, 0 better, of 40 verdicts on turns judged in both runs."
    )
    assert "- Changed between the runs: prompt chatbots/generation of chatbot vanilla." in lines
    assert "**gone (2)**" in lines
    assert (
        "  - after: I do not know. &#60;b&#62;Ask&#60;/b&#62; &#64;&#8288;somebody &#124; at "
        "www&#46;example.org." in lines
    )
    assert lines.index("**gone (2)**") < lines.index("<details><summary>Differences</summary>")
    assert "| vanilla | halludetect | 2 | paired | 1.00 | 0.25 | -0.75 | 1 | – |" in text


def test_a_long_comment_is_cut() -> None:
    bots = {f"bot{number:04}": {("asha", 0): [1]} for number in range(900)}
    run = found(bots)
    text = render_markdown(compare_runs([run, run]))
    assert len(text) < LONGEST + 200
    assert text.endswith("The rest is left out: a comment has no room for it. `--html` writes all.\n")


def test_several_runs_have_headings() -> None:
    run = found({"bot": {("asha", 0): [1]}})
    lines = render_markdown(compare_runs([run, run, run])).splitlines()
    assert [line for line in lines if line.startswith("#")] == [
        "### hallulab: B (run), C (run) beside A (run)",
        "#### B (run)",
        "#### C (run)",
    ]

"""Front matter as Jekyll, Hugo, Obsidian and Docusaurus write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.packs.labels import split_front_matter
from tests.kit.refusals import refusal

PATH = Path("fees.md")


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("---\nlayout: post\ntitle: Fees\ntags: [a, b]\ndate: 2026-10-01\n---\nA saw.", "Fees", "A saw."),
        ("---\ntitle: 2026\n---\nA saw.", "2026", "A saw."),
        ("---\n---\nA saw.", None, "A saw."),
        ('+++\ntitle = "Fees"\ndate = 2026-10-01\n+++\nA saw.', "Fees", "A saw."),
        ("---\n\nA saw.\n\n---\n\nA drill.", None, "---\n\nA saw.\n\n---\n\nA drill."),
        ("---\nA saw costs 5 euros.\n", None, "---\nA saw costs 5 euros.\n"),
        ("---", None, "---"),
    ],
)
def test_front_matter_is_apart_from_the_text(text: str, title: str | None, body: str) -> None:
    read = split_front_matter(PATH, text)
    assert (read.labels.title, read.body, read.notes) == (title, body, ())


def test_a_key_that_is_nearly_a_label_is_named(tmp_path: Path) -> None:
    read = split_front_matter(PATH, "---\ntitle: Fees\nsorce: Act\n---\nA saw.")
    assert read.notes == ("fees.md, line 3: the label sorce is not read; source would be",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "---\ntitle: [a, b]\n---\nA saw.",
            "fees.md, line 2: title: must be text, not a list. Put it in quotes.",
        ),
        ("+++\ntitle = true\n+++\nA saw.", "fees.md, front matter: title: must be text. Put it in quotes."),
        (
            "+++\ntitle = =\n+++\nA saw.",
            "fees.md: the front matter is not valid TOML (Invalid value (at line 1, column 9)). Correct it.",
        ),
        (
            "+++\ntitle = 'Fees'\n",
            "fees.md, line 1: the front matter that begins here has no end. Close it with a line `+++`, or "
            "put an empty line before it.",
        ),
    ],
)
def test_wrong_front_matter_is_refused(text: str, complaint: str) -> None:
    assert refusal(split_front_matter, PATH, text) == complaint

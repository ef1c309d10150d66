"""What is said of JSON lines that users write."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from scenarios.data_files import read_records
from scenarios.errors import UsageError
from scenarios.transcript import Frozen


class Part(Frozen):
    said: str = ""


class Line(Frozen):
    reply: str = "x"
    needed: str
    label: bool | None = None
    parts: tuple[Part, ...] = ()
    meta: dict[str, str | int] = Field(default_factory=dict)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"needed": "x", "reply": null}', "reply: is null. Give a text, or leave the key out."),
        ('{"needed": null}', "needed: is null. Give a text."),
        ('{"needed": {"y": 1}}', "needed: must be text, not an object. Give a text."),
        ('{"needed": 7}', "needed: must be text, not the int 7. Put it in quotes."),
        ('{"needed": "x", "meta": {"k": {"y": 1}}}', "meta.k: must be text, not an object. Give a text."),
        (
            '{"needed": "x", "parts": [{}, {"said": 7}]}',
            "parts.1.said: must be text, not the int 7. Put it in quotes.",
        ),
        ('{"reply": "x"}', "needed: this key is missing. Add it; see docs/x.md."),
        (
            '{"needed": "x", "label": true, "label": false}',
            "not valid JSON (the key label occurs twice). Correct or delete the line.",
        ),
        (
            '{"needed": "x", "parts": [{"said": "a", "said": "b"}]}',
            "not valid JSON (the key said occurs twice). Correct or delete the line.",
        ),
    ],
)
def test_a_wrong_line_is_named_in_the_words_of_json(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError) as caught:
        list(read_records(path, Line, "docs/x.md"))
    assert str(caught.value) == f"{path}, line 1: {complaint}"

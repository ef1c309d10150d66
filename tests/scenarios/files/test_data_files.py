"""What is said of JSON lines that users write."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Annotated, BinaryIO

import pytest
from pydantic import Field, ValidationError

from hallulab.chatbots.external import CallableOptions
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files import data_files
from hallulab.scenarios.files.data_files import (
    choose_main_error,
    explain_error,
    read_records,
    require_files_only,
)
from hallulab.scenarios.packs.pack import Identifier
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import NAME
from tests.kit.refusals import refusal


class Part(Frozen):
    said: str = ""


class Line(Frozen):
    reply: str = "x"
    needed: str
    label: bool | None = None
    parts: tuple[Part, ...] = ()
    pair: tuple[str, ...] | None = Field(default=None, min_length=2)
    code: str | None = Field(default=None, pattern="^z$")
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
        ("[1, 2]", "must be keys with values, `{key: value}`, not a list. Correct it; see docs/x.md."),
        (
            '{"needed": "x", "parts": ["y"]}',
            "parts.0: must be keys with values, `{key: value}`, not the text 'y'. Correct it; see docs/x.md.",
        ),
        (
            '{"needed": "x", "parts": "y \\"z\\""}',
            'parts: must be a list, such as ["y \\"z\\""]. Correct it; see docs/x.md.',
        ),
        (
            f'{{"needed": "x", "parts": "{"y" * 41}"}}',
            "parts: must be a list, not a text. Correct it; see docs/x.md.",
        ),
        (
            '{"needed": "x", "parts": {}}',
            "parts: must be a list, not keys with values. Correct it; see docs/x.md.",
        ),
        ('{"needed": "x", "pair": ["y"]}', "pair: has 1; give at least 2. Correct it; see docs/x.md."),
        (
            '{"needed": "x", "code": "y"}',
            "code: string should match pattern '^z$'. Correct it; see docs/x.md.",
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
    said = refusal(lambda: list(read_records(path, Line, "docs/x.md")))
    assert said == f"{path}, line 1: {complaint}"


class Patterns(Frozen):
    name: Annotated[str, Field(pattern=NAME)] = "a"
    identifier: Identifier = "a"
    target: Annotated[str, CallableOptions.model_fields["target"].metadata[0]] = "a:b"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (
            "name",
            "may hold only letters (A to Z), digits, `.`, `_` and `-`, and begins with a letter or digit",
        ),
        (
            "identifier",
            "may hold only small letters (a to z), digits and `-`, and begins with a letter or digit",
        ),
        ("target", "must be `module:attribute`, such as `my_bot:answer`"),
    ],
)
def test_what_a_pattern_allows_is_said_in_words(field: str, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Patterns.model_validate({field: "?"})
    assert explain_error(choose_main_error(caught.value)) == words


def test_a_models_folder_with_a_pipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "nothing").symlink_to("none")
    require_files_only(tmp_path)
    os.mkfifo(tmp_path / "deep" / "model.safetensors")
    with pytest.raises(UsageError, match=r"deep/model\.safetensors: it is a pipe, no file\."):
        require_files_only(tmp_path)


def test_used_up_file_handles_are_not_the_files_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> BinaryIO:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    monkeypatch.setattr(data_files, "open_file", full)
    with pytest.raises(OperationalError) as caught:
        data_files.read_text(tmp_path / "a.yaml")
    assert str(caught.value) == (
        f"{tmp_path / 'a.yaml'} was not read: this process has too many open files. Lower --concurrency, or "
        "raise the limit (ulimit -n)."
    )

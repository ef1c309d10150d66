"""YAML that users and strangers write: what is read, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.files.yaml_text import DEEPEST, LARGEST, YamlText, dump_yaml, read_value, read_yaml
from tests.kit.refusals import refusal


def bomb(levels: int = 9) -> str:
    """Each line names the one before nine times."""
    lines = ["a: &a [" + ", ".join(["x"] * 9) + "]"]
    for before, name in zip("abcdefghij"[:levels], "bcdefghijk"[:levels], strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 9) + "]")
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[Any, Any]:
    return YamlText(Path("f.yaml"), text, schema="docs/x.md").data


def refused(text: str) -> str:
    return refusal(read, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", 1),
        ("a: 0x10", 16),
        ("a: 1.5", 1.5),
        ("a: yes", True),
        ("a: null", None),
        ("a:", None),
        ("a: 2020-01-31", "2020-01-31"),
        ("a: 2020-99-99", "2020-99-99"),
        ("a: =", "="),
        ("a: 5:00", "5:00"),
        ("a: 12:30:45.5", "12:30:45.5"),
        ("a: 010", "010"),
        ("a: 0", 0),
        ("a: 18446744073709551615", 2**64 - 1),
        ('a: "\\U0001F600"', "😀"),
    ],
)
def test_what_json_can_say_is_read(text: str, value: object) -> None:
    assert read(text)["a"] == value


ALIAS = "the alias *{}: aliases are not read, repeat the value"
DEEP = f"more than {DEEPEST} lists and mappings in one another"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (bomb(), 2, ALIAS.format("a")),
        ("a: &a [1]\nb: 2\nc: *a\n", 3, ALIAS.format("a")),
        ("b: &b {x: 1}\na: {<<: *b}\n", 2, ALIAS.format("b")),
        ("a: &a [*a]", 1, ALIAS.format("a")),
        ("a: *none", 1, ALIAS.format("none")),
        ("a: " + "[" * 100_000, 1, DEEP),
        ("\n".join(" " * level + "a:" for level in range(300)), DEEPEST, DEEP),
        ("[" * (LARGEST + 1), 1, f"more than {LARGEST:,} characters"),
        ("a: 1\nb: \x07\n", 2, "unacceptable character #x0007: control characters are not allowed"),
        (f"{'k' * 999}: 1\n{'k' * 999}: 2\n", 2, f"the key {'k' * 191}…"),
    ],
    ids=lambda value: value if isinstance(value, int) else "",
)
def test_a_text_that_is_made_to_grow_or_cannot_be_written_is_refused_in_its_line(
    text: str, line: int, reason: str
) -> None:
    assert refused(text) == f"f.yaml, line {line}: not valid YAML ({reason}). Correct it."


def test_the_deepest_nesting_is_read() -> None:
    text = "a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2)
    assert str(read(text)["a"]) == text[3:]


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.scenarios.files.yaml_text.MOST", 1_000)
    assert read("a: [" + "1," * 996 + "]")["a"] == [1] * 996
    assert refused("a:\n- [" + "1," * 999 + "]") == (
        "f.yaml, line 2: not valid YAML (more than 1,000 values). Correct it."
    )


def test_of_a_file_no_more_is_read_than_is_taken() -> None:
    said = "/dev/zero: has more than 1,000,000 bytes. Split it, or name another file."
    assert refusal(read_yaml, Path("/dev/zero"), "docs/x.md", given=True) == said


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (".nan", ".nan is no finite number"),
        ("-.inf", "-.inf is no finite number"),
        ("1.0e+400", "1.0e+400 is no finite number"),
        ("18446744073709551616", "18446744073709551616 has more than 64 bits"),
        ("-18446744073709551616", "-18446744073709551616 has more than 64 bits"),
        ("0x" + "f" * 5000, "a number of more than 40 characters"),
        ('"a\\ud800b"', "found invalid Unicode character escape code"),
        ('"a\\0b"', "a text holds the character NUL"),
        ("{x: 1, x: 2}", "the key x occurs twice"),
        ("{x: 1, 'x': 2}", "the key x occurs twice"),
        ("{yes: 1, true: 2}", "the key true occurs twice"),
        ("{[x]: 1}", "found unhashable key"),
        ("{{x: y}: 1}", "found unhashable key"),
        ('!!int ""', "'' is no int"),
        ('!!int "x"', "'x' is no int"),
        ('!!float ""', "'' is no float"),
        ('!!bool "x"', "'x' is no bool"),
        ("!!map x", "expected a mapping node, but found scalar"),
        ("!!set {x}", "could not determine a constructor for the tag 'tag:yaml.org,2002:set'"),
        ("!!binary aGk=", "could not determine a constructor for the tag 'tag:yaml.org,2002:binary'"),
        ("!!python/name:os.system", "could not determine a constructor for the tag '…'"),
    ],
)
def test_what_no_field_can_hold_is_refused(value: str, reason: str) -> None:
    told = refused(f"b: 1\na: {value}\n")
    tag = "tag:yaml.org,2002:python/name:os.system"
    assert told == f"f.yaml, line 2: not valid YAML ({reason.replace('…', tag)}). Correct it."


def test_a_single_value_is_read_within_the_same_bounds() -> None:
    assert read_value("[1, a]") == [1, "a"]
    assert read_value("") is None
    with pytest.raises(ValueError, match=r"^more than 50 lists and mappings in one another$"):
        read_value("[" * 2000)
    with pytest.raises(ValueError, match=r"^\.nan is no finite number$"):
        read_value(".nan")
    with pytest.raises(ValueError, match=r"^a text holds half a character \(a lone surrogate\)$"):
        read_value("a\ud800")


def test_a_value_that_occurs_twice_is_written_twice() -> None:
    twice = [1, 2]
    text = dump_yaml({"b": twice, "a": twice})
    assert text == "b:\n- 1\n- 2\na:\n- 1\n- 2\n"
    assert read(text) == {"b": [1, 2], "a": [1, 2]}

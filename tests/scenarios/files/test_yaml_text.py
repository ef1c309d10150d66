"""YAML that users and strangers write: what is read, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.yaml_text import DEEPEST, LARGEST, YamlText, dump_yaml, read_value, read_yaml


def bomb(levels: int = 9) -> str:
    """Each line names the one before nine times."""
    lines = ["a: &a [" + ", ".join(["x"] * 9) + "]"]
    for before, name in zip("abcdefghij"[:levels], "bcdefghijk"[:levels], strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 9) + "]")
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[Any, Any]:
    return YamlText(Path("f.yaml"), text, schema="docs/x.md").data


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    return str(caught.value)


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
        ("a: 18446744073709551615", 2**64 - 1),
        ('a: "\\U0001F600"', "😀"),
    ],
)
def test_what_json_can_say_is_read(text: str, value: object) -> None:
    assert read(text)["a"] == value


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        (bomb(), 2, "a"),
        ("a: &a [1]\nb: 2\nc: *a\n", 3, "a"),
        ("b: &b {x: 1}\na: {<<: *b}\n", 2, "b"),
        ("a: &a [*a]", 1, "a"),
        ("a: *none", 1, "none"),
    ],
)
def test_an_alias_is_refused_in_its_line(text: str, line: int, name: str) -> None:
    reason = f"the alias *{name}: aliases are not read, repeat the value"
    assert refused(text) == f"f.yaml, line {line}: not valid YAML ({reason}). Correct it."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: " + "[" * 100_000, 1),
        ("\n".join(" " * level + "a:" for level in range(300)), DEEPEST),
    ],
)
def test_deep_nesting_is_refused(text: str, line: int) -> None:
    reason = f"more than {DEEPEST} lists and mappings in one another"
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


def test_too_large_a_text_is_refused_before_it_is_parsed() -> None:
    assert refused("[" * (LARGEST + 1)) == (
        f"f.yaml, line 1: not valid YAML (more than {LARGEST:,} characters). Correct it."
    )


def test_of_a_file_no_more_is_read_than_is_taken() -> None:
    with pytest.raises(UsageError) as caught:
        read_yaml(Path("/dev/zero"), "docs/x.md", given=True)
    assert str(caught.value) == "/dev/zero: has more than 1,000,000 bytes. Split it, or name another file."


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (".nan", ".nan is no finite number"),
        ("-.inf", "-.inf is no finite number"),
        ("1.0e+400", "1.0e+400 is no finite number"),
        ("18446744073709551616", "18446744073709551616 has more than 64 bits"),
        ("-18446744073709551616", "-18446744073709551616 has more than 64 bits"),
        ("0x" + "f" * 5000, "a number of more than 40 characters"),
        ("1" + ":1" * 300, "a number of more than 40 characters"),
        ("1" + ":1" * 300 + ".5", "a number of more than 40 characters"),
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


def test_a_character_that_yaml_forbids_is_told_with_its_line() -> None:
    assert refused("a: 1\nb: \x07\n") == (
        "f.yaml, line 2: not valid YAML (unacceptable character #x0007: control characters are not allowed). "
        "Correct it."
    )


def test_an_error_holds_no_more_than_the_beginning_of_a_key() -> None:
    assert refused(f"{'k' * 999}: 1\n{'k' * 999}: 2\n") == (
        f"f.yaml, line 2: not valid YAML (the key {'k' * 191}…). Correct it."
    )


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

"""YAML that users and strangers write: what is read, and what is refused in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.yaml_text import DEEPEST, LARGEST, YamlText, read_value, read_yaml
from hallulab.scenarios.transcript import Frozen


def bomb(levels: int = 9) -> str:
    """Each line names the one before nine times."""
    lines = ["a: &a [" + ", ".join(["x"] * 9) + "]"]
    for before, name in zip("abcdefghij"[:levels], "bcdefghijk"[:levels], strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 9) + "]")
    return "\n".join(lines) + "\n"


def merge_bomb(levels: int = 30) -> str:
    """Each line merges the one before twice."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, levels)]
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
        ('a: "\\ud83d\\ude00"', "😀"),
        ("b: &b {x: 1, y: 2}\na: {<<: *b, y: 3}", {"x": 1, "y": 3}),
        ("b: &b [1]\na: [*b, *b]", [[1], [1]]),
    ],
)
def test_what_json_can_say_is_read(text: str, value: object) -> None:
    assert read(text)["a"] == value


@pytest.mark.parametrize("text", [bomb(), merge_bomb(), f"a: &a {'x' * 999}\nb: [{'*a, ' * 2000}]\n"])
def test_aliases_that_unfold_to_too_much_are_refused(text: str) -> None:
    assert refused(text).endswith(
        ": its aliases repeat more than 100,000 values or 1,000,000 characters. Make the file simpler."
    )


def test_a_bomb_is_refused_where_it_goes_off() -> None:
    assert refused(bomb()).startswith("f.yaml, line 6: ")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: " + "[" * 100_000, 1),
        ("\n".join(" " * level + "a:" for level in range(300)), DEEPEST),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300)), DEEPEST),
    ],
)
def test_deep_nesting_is_refused(text: str, line: int) -> None:
    assert refused(text) == (
        f"f.yaml, line {line}: more than {DEEPEST} lists and mappings in one another. Make the file simpler."
    )


def test_the_deepest_nesting_is_read() -> None:
    text = "a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2)
    assert str(read(text)["a"]) == text[3:]


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.scenarios.files.yaml_text.MOST", 1_000)
    assert read("a: [" + "1," * 996 + "]")["a"] == [1] * 996
    assert refused("a:\n- [" + "1," * 999 + "]") == (
        "f.yaml, line 2: more than 1,000 values. Make the file simpler."
    )


def test_too_large_a_text_is_refused_before_it_is_parsed() -> None:
    assert refused("[" * (LARGEST + 1)) == (
        f"f.yaml, line 1: more than {LARGEST:,} characters. Make the file simpler."
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
        ("-9223372036854775809", "-9223372036854775809 has more than 64 bits"),
        ("0x" + "f" * 5000, "a number of more than 40 characters"),
        ("1" + ":1" * 300, "a number of more than 40 characters"),
        ("1" + ":1" * 300 + ".5", "a number of more than 40 characters"),
        ('"a\\ud800b"', "a text holds half a character (a lone surrogate)"),
        ('"a\\0b"', "a text holds the character NUL"),
        ("&a [*a]", "an alias stands inside of what it names"),
        ("&a {x: {y: *a}}", "an alias stands inside of what it names"),
        ("&a {<<: *a}", "an alias stands inside of what it names"),
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
        ("*a", "found undefined alias 'a'"),
    ],
)
def test_what_no_field_can_hold_is_refused(value: str, reason: str) -> None:
    told = refused(f"b: 1\na: {value}\n")
    tag = "tag:yaml.org,2002:python/name:os.system"
    assert told == f"f.yaml, line 2: not valid YAML ({reason.replace('…', tag)}). Correct it."


def test_a_character_that_yaml_forbids_is_told_with_its_line() -> None:
    assert refused("a: 1\nb: \x07\n") == (
        "f.yaml, line 2: not valid YAML (unacceptable character #x0007: special characters are not allowed). "
        "Correct it."
    )


def test_an_error_holds_no_more_than_the_beginning_of_a_key() -> None:
    assert refused(f"{'k' * 999}: 1\n{'k' * 999}: 2\n") == (
        f"f.yaml, line 2: not valid YAML (the key {'k' * 191}…). Correct it."
    )


class Model(Frozen):
    a: int = 0


def test_the_line_of_a_key_of_its_own_is_told_and_not_of_the_merged_one() -> None:
    text = YamlText(Path("f.yaml"), "b: &b {a: x}\nc:\n  <<: *b\n  a: y\n", schema="docs/x.md")
    assert text.place(["c", "a"]) == "f.yaml, line 4"


def test_a_single_value_is_read_within_the_same_bounds() -> None:
    assert read_value("[1, a]") == [1, "a"]
    assert read_value("") is None
    with pytest.raises(ValueError, match=r"^more than 50 lists and mappings in one another$"):
        read_value("[" * 2000)
    with pytest.raises(ValueError, match=r"^\.nan is no finite number$"):
        read_value(".nan")

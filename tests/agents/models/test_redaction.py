"""Keys in texts from outside: in which forms they are found, and what is left alone."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hallulab.agents.models.redaction import MARK, SHORTEST, Redaction, remove_keys
from tests.growth.families import MOST, measure_growth_with

KEY = "sk-canary/Ab+9_0.xyz"

PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=SHORTEST, max_size=40)


def escaped(key: str, form: str, odd_only: bool = False) -> str:
    """The key with every character, or every other one, as `form` writes it."""
    return "".join(
        char if odd_only and place % 2 else form.format(code=ord(char)) for place, char in enumerate(key)
    )


@pytest.mark.parametrize(
    ("said", "left"),
    [
        (KEY, "[key]"),
        (f"Authorization: Bearer {KEY}.", "Authorization: Bearer [key]."),
        (json.dumps(json.dumps({"key": KEY})), r'"{\"key\": \"[key]\"}"'),
        (KEY.replace("/", r"\/"), "[key]"),
        (escaped(KEY, "\\u{code:04x}"), "[key]"),
        (escaped(KEY, "\\\\u{code:04X}", odd_only=True), "[key]"),
        (escaped(KEY, "\\x{code:02x}", odd_only=True), "[key]"),
        (escaped(KEY, "&#{code};"), "[key]"),
        (escaped(KEY, "&#x{code:x};", odd_only=True), "[key]"),
        (escaped(KEY, "&#{code:05d};"), "[key]"),
        (escaped(KEY, "&#{code}"), "[key]"),
        (KEY.replace("/", "&sol;").replace("+", "&amp;plus;"), "[key]"),
        (escaped(KEY, "\\u{{{code:x}}}"), "[key]"),
        (escaped(KEY, "\\U{code:08x}", odd_only=True), "[key]"),
        (escaped(KEY, "\\{code:03o}"), "[key]"),
        (escaped(KEY, "%u{code:04X}", odd_only=True), "[key]"),
        (json.dumps(quote(escaped(KEY, "&#{code};"), safe="")), '"[key]"'),
        (f"é 😀 \\n{quote(KEY, safe='')}\\n%20", "é 😀 \\n[key]\\n%20"),
        (quote(KEY, safe=""), "[key]"),
        (quote(quote(KEY, safe=""), safe=""), "[key]"),
        (escaped(KEY, "%{code:02x}"), "[key]"),
        (KEY.encode().hex(), "[key]"),
        (KEY.encode().hex().upper(), "[key]"),
        (KEY.encode().hex(" "), "[key]"),
        (f"<{KEY.encode().hex(':').upper()}>", "<[key]>"),
        (quote(base64.b64encode(KEY.encode()).decode()[:-2], safe=""), "[key]"),
    ],
)
def test_a_key_is_found_in_every_form(said: str, left: str) -> None:
    assert Redaction([KEY]).text(said) == left


@pytest.mark.parametrize("before", ["", "u", "us", "user:", "Bearer "])
@pytest.mark.parametrize("after", ["", ":", "::", ":::"])
def test_nothing_of_a_key_in_base64_is_left_but_some_bits(before: str, after: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        left = Redaction([KEY]).text(encode((before + KEY + after).encode()).decode())
        around = len(base64.b64encode((before + after).encode()).decode().strip("="))
        assert "[key]" in left
        assert len(left.replace("[key]", "").strip("=")) <= around + 2


def test_a_key_in_base64_of_several_lines_is_found() -> None:
    for around in range(60):
        lines = base64.encodebytes(("x" * around + KEY + "y" * 90).encode()).decode()
        assert "[key]" in Redaction([KEY]).text(lines)
        assert "[key]" in Redaction([KEY]).text(json.dumps(lines))


def test_a_key_with_signs_of_html_is_found() -> None:
    key = "p&ss<word>'\"1"
    for said in (html.escape(key), html.escape(html.escape(key)), json.dumps(html.escape(key, quote=False))):
        assert Redaction([key]).text(said).strip('"') == "[key]"


@pytest.mark.parametrize("part", ["\\", "%25", "&amp;", "sk-canary/\\"])
def test_the_time_grows_with_the_text(part: str) -> None:
    def make(length: int) -> str:
        return part * (length // len(part))

    assert Redaction([KEY]).text(make(1000)) == make(1000)
    assert measure_growth_with(Redaction([KEY]).text, make) < MOST


def test_of_two_keys_the_longer_one_is_taken_out_first() -> None:
    assert Redaction(["sk-12345", "sk-12345-67890"]).text("sk-12345-67890 sk-12345") == "[key] [key]"


@pytest.mark.parametrize("key", ["none", "test", "a"])
def test_a_short_key_is_taken_out_behind_bearer_only(key: str) -> None:
    said = f"{key} of a test: Bearer {key}, bearer%20{key} and Bearer {key}x"
    assert Redaction([key]).text(said) == f"{key} of a test: Bearer [key], bearer%20[key] and Bearer {key}x"


def test_text_without_a_key_is_left_as_it_is() -> None:
    text = "5 % of &#45; \\u002d \\ é 😀 sk-canary"
    assert Redaction([KEY]).text(text) == text
    assert Redaction([]).text(text) == text


def test_half_characters_are_replaced() -> None:
    assert Redaction([KEY]).text(f"a\ud800b{KEY}") == "a\ufffdb[key]"
    assert Redaction([]).text("\udfff") == "\ufffd"


def test_long_keys_are_found_in_clear() -> None:
    key = "k" * 5000
    assert Redaction([key]).text(f"<{key}> \\") == "<[key]> \\"


@pytest.mark.parametrize(
    ("key", "said", "left"),
    [
        ('0000%00"', json.dumps('x0000%00"'), '"x[key]"'),
        ('0000&#48;"', json.dumps('0000&#48;"'), '"[key]"'),
        ('000000"%2', json.dumps('000000"%20'), '"[key]0"'),
        ('0000\\n%00"', quote(json.dumps('0000\\n%00"'), safe=""), "%22[key]%22"),
        ("0000\\n&<", html.escape("0000\\n&<"), "[key]"),
    ],
)
def test_a_key_that_looks_escaped_is_found_in_escapes_of_another_kind(key: str, said: str, left: str) -> None:
    assert Redaction([key]).text(said) == left


@given(PRINTABLE, st.text(max_size=20), st.text(max_size=20))
@example('0000%00"', "x", "")
def test_no_key_is_left_whatever_stands_around_it(key: str, before: str, after: str) -> None:
    redaction = Redaction([key])
    if "key" not in key and "[" not in key and "]" not in key:
        assert key not in redaction.text(before + key + after)
        for escape in (json.dumps, html.escape, lambda text: quote(text, safe="")):
            assert redaction.finds(escape(f"x{key}{after}"))
            assert escape(key).strip('"') not in redaction.text(escape(f"x{key}"))


def test_keys_of_the_environment_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-another")
    monkeypatch.setenv("DB_PASSWORD", "long-enough-secret")
    monkeypatch.setenv("MONKEY_KIND", "chimpanzee")
    monkeypatch.setenv("EMPTY_TOKEN", "  ")
    said = remove_keys("sk-of-another long-enough-secret chimpanzee sk-sent-here", "sk-sent-here")
    assert said == "[key] [key] chimpanzee [key]"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("PGPASSWORD", "pg-1234567890", "pg-1234567890"),
        ("MYSQL_PWD", "my-1234567890", "my-1234567890"),
        ("GITHUB_PAT", "gh-1234567890", "gh-1234567890"),
        ("DATABASE_URL", "postgres://anna:db-1234567890@h/books", "db-1234567890"),
        ("MONGODB_URI", "mongodb+srv://anna:mo%2D1234567890@h/books", "mo-1234567890"),
    ],
)
def test_passwords_of_databases_are_taken_out(
    name: str, value: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert remove_keys(f"cannot log in with {secret}") == f"cannot log in with {MARK}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("DATABASE_URL", "postgres://postgres:password@h/books"), ("DOCS_URL", "https://anna-4711@example.org")],
)
def test_words_of_an_address_stay(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    text = "The password of postgres is with anna-4711."
    assert remove_keys(text) == text


@pytest.mark.parametrize("told", ["sk-abcdef123", "SK-ABCDEF123", "Sk-AbCdEf123"])
def test_a_key_in_other_capitals_is_taken_out(told: str) -> None:
    assert remove_keys(f"bearer {told}!", "Sk-AbCdEf123") == f"bearer {MARK}!"


def test_a_key_that_is_set_later_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert remove_keys("sk-set-later") == "sk-set-later"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-set-later")
    assert remove_keys("sk-set-later") == "[key]"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("Bearer hk-1234567890", "hk-1234567890"),
        ("Token hk-1234567890", "hk-1234567890"),
        ("session=hk-1234567890; theme=dark", "hk-1234567890"),
        ("Basic YW5uYTpnZWhlaW0tMTIzNA==", "YW5uYTpnZWhlaW0tMTIzNA=="),
        ("Basic YW5uYTpnZWhlaW0tMTIzNA==", "geheim-1234"),
        ("YW5uYTpnZWhlaW0tMTIzNA==", "anna:geheim-1234"),
    ],
)
def test_the_secret_within_the_value_of_a_header_is_found(sent: str, said: str) -> None:
    assert remove_keys(f"You sent {said}!", sent) == f"You sent {MARK}!"


def test_words_of_a_header_that_is_no_secret_stay() -> None:
    text = "An application of the agency"
    assert remove_keys(text, "Example application") == text


def test_a_token_in_place_of_a_proxys_user_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://tk-1234567890@proxy.example:8080")
    assert remove_keys("407: tk-1234567890 is unknown") == f"407: {MARK} is unknown"

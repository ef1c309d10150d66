"""Templates take bounded time and space, and reach nothing but what fills them in."""

from __future__ import annotations

import pytest

from hallulab.chatbots import templates
from hallulab.chatbots.templates import evaluate, fill_in_text

SAID = {"message": "bye", "history": [{"role": "user", "content": "hi"}, {"role": "user", "content": "bye"}]}


@pytest.fixture(autouse=True)
def less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "_ALLOWANCE", 1 << 20)


DOUBLED = "{% set x = 'aaaaaaaaaa' %}"


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 10**10 }}",
        "{{ [0] * 10**10 }}",
        "{{ 'a' | center(10**10) }}",
        "{{ 'a' | indent(10**10) }}",
        "{{ 'a'.ljust(10**10) }}",
        "{{ 'a'.zfill(10**10) }}",
        "{{ ['a' * 1000] * 1000 | join('b' * 100000) }}",
        "{{ message | batch(10**9, 'x') | list }}",
        "{% set x = 'a'.ljust(9999) %}" + "{% set x = x | replace('a', x) %}" * 3,
        DOUBLED + "{% set x = x ~ x %}" * 60,
        DOUBLED + "{% set x = x + x %}" * 60,
        DOUBLED + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60,
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ],
)
def test_what_would_fill_the_memory_or_never_end_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="it takes too much time or makes too long a text"):
        fill_in_text(template, SAID)


def test_a_value_whose_parts_are_shared_is_paid_for_as_it_is_written() -> None:
    with pytest.raises(ValueError, match="too much time"):
        fill_in_text("{% set x = [1] %}" + "{% set x = [x, x] %}" * 60 + "{{ x }}", SAID)
    with pytest.raises(ValueError, match="too much time"):
        evaluate("history * 10**9", SAID)


@pytest.mark.parametrize(
    "template", ["{{ 10 ** 99999 }}", "{{ (10**1000) * (10**1000) }}", "{{ 2.0**5000 }}"]
)
def test_a_number_of_any_size_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="it makes too large a number"):
        fill_in_text(template, SAID)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ self.__init__.__globals__.os }}",
        "{{ '{0.__class__}'.format(message) }}",
        "{{ '%1000000000d' % 1 }}",
        "{% include '/etc/passwd' %}",
        "{{ lipsum() }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
)
def test_what_leads_out_or_has_no_price_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="a template is wrong"):
        fill_in_text(template, SAID)


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("{{ 'a' ~ 1 ~ message }}", "a1bye"),
        ("{{ 1 + 2 }} {{ 7 % 3 }} {{ 2 ** 8 }} {{ 'ab' * 2 }}", "3 1 256 abab"),
        (
            "{% for m in history %}{{ loop.index }}/{{ loop.length }} {{ m.content | upper }}"
            "{{ ', ' if not loop.last }}{% endfor %}",
            "1/2 HI, 2/2 BYE",
        ),
        ("{{ history | map(attribute='content') | join(', ') }}", "hi, bye"),
        ("{{ history | selectattr('role', 'equalto', 'user') | list | length }}", "2"),
        (
            "{% set ns = namespace(t='') %}"
            "{% for m in history %}{% set ns.t = ns.t ~ m.content %}{% endfor %}{{ ns.t }}",
            "hibye",
        ),
        ("{{ message | truncate(20) | replace('b', 'd') | tojson }}", '"dye"'),
    ],
)
def test_what_templates_usually_do_is_done(template: str, made: str) -> None:
    assert fill_in_text(template, SAID) == made

"""Whatever stands in an address, a query, a header or a body: an answer with a reason, never a failure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer.offer import Offer
from tests.builders import conversation, scored
from tests.simulator.viewer.asking import Answer, Asker
from tests.simulator.viewer.serving import append

NUMBERS = (
    *(
        "99999999999999999999999",
        "9" * 5000,
        "-1",
        "-99999999999999999999999",
        "007",
        "0" * 5000,
        "1e9",
        "1.5",
    ),
    *("NaN", "Infinity", "", " ", "٣", "²", "１", "1_0", "0x10", "+1", "true", "null"),
)
TEXTS = (
    *("\x00", "a\x00b", "\ud800", "\u202e", "é" * 3000, "../../etc/passwd", "a/b", "%", "%zz"),
    *("'", '"', "\\", "\n"),
)


ESCAPED = ("%ff", "%00", "%zz", "%", "%2e%2e%2f", "%u0041", "%c0%af", "%ed%a0%80", "%2F", "%0d%0a", "%F0%9F")
"""As they stand in an address."""


QUERY = (
    *("page", "chatbot", "persona", "flagged", "annotator", "detector"),
    *("bot", "run", "chat", "reference", "scenario", "seen"),
)
"""What pages read from an address."""


def escape(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


HOSTILE = (*map(escape, (*NUMBERS, *TEXTS)), *ESCAPED)


@pytest.fixture
def asker(tmp_path: Path) -> Asker:
    """Two runs, with a flagged turn each."""
    for name in ("one", "two"):
        run = tmp_path / "runs" / name
        run.parent.mkdir(exist_ok=True)
        append(run / "conversations.jsonl", [conversation("a", ["x", "y"])])
        append(run / "verdicts.jsonl", [scored("a", 0, [(0, 1)])])
    experiment = Experiment(model="m", base_url="http://127.0.0.1:9/v1")
    return Asker([tmp_path / "runs"], tmp_path / "indices", Offer(experiment, tmp_path, True))


def addresses(asker: Asker, hostile: str) -> Iterator[tuple[str, str]]:
    """Each address with the hostile text in the place of one of its parts, the others being right."""
    known = {"run": asker.runs.list()[0].id, "chat": "a", "turn": "0", "direction": "next", "order": "say"}
    for route in asker.routes:
        names = re.findall(r"\{(\w+)", route.path)
        for wrong in names:
            parts = {**known, "talk": "none", wrong: hostile}
            target = re.sub(r"\{(\w+)[^}]*\}", lambda found, parts=parts: parts[found[1]], route.path)
            for method in sorted(route.methods - {"HEAD"}):
                yield method, target


def queries(asker: Asker, hostile: str) -> Iterator[str]:
    """Each address with the hostile text in the place of everything that it may be asked for."""
    known = {"run": asker.runs.list()[0].id, "chat": "a", "turn": "0", "direction": "next", "talk": "none"}
    asked = "&".join(f"{name}={hostile}" for name in QUERY)
    for route in asker.routes:
        if "GET" in route.methods and not route.path.endswith("/events"):
            yield re.sub(r"\{(\w+)[^}]*\}", lambda found: known[found[1]], route.path) + f"?{asked}"
    for name in ("run", "chat"):
        others = {"run": known["run"], "chat": "a", name: hostile}
        yield f"/beside?run={others['run']}&chat={others['chat']}"
    yield f"/compare?reference={known['run']}&run={hostile}"


FEW = (escape("9" * 23), escape("٣"), escape("\ud800"), escape("a\x00b"), "%ff")
"""The worst of them, for the quick tests."""


def fail_in_addresses(asker: Asker, hostile: Sequence[str]) -> list[tuple[str, str, int]]:
    return [
        (method, target[:80], answer.status)
        for text in hostile
        for method, target in addresses(asker, text)
        if (answer := asker.ask(method, target)).status not in (200, 204, 303, 307, 400, 403, 404, 405, 409)
    ]


def fail_in_queries(asker: Asker, hostile: Sequence[str]) -> list[tuple[str, int]]:
    return [
        (target[:80], answer.status)
        for text in hostile
        for target in queries(asker, text)
        if (answer := asker.ask("GET", target)).status not in (200, 204, 303, 307, 400, 404)
    ]


def test_nothing_in_an_address_makes_a_page_fail(asker: Asker, capfd: pytest.CaptureFixture[str]) -> None:
    assert fail_in_addresses(asker, FEW) == []
    assert capfd.readouterr() == ("", "")


def test_nothing_in_a_query_makes_a_page_fail(asker: Asker, capfd: pytest.CaptureFixture[str]) -> None:
    assert fail_in_queries(asker, FEW[2:3]) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_nothing_at_all_in_an_address_or_query_makes_a_page_fail(asker: Asker) -> None:
    assert fail_in_addresses(asker, HOSTILE) == []
    assert fail_in_queries(asker, HOSTILE) == []


MISSED = {"kind": "missed", "flag": "f", "start": 0, "end": 1, "text": "x", "severity": 3, "reason": "r"}
BODIES: dict[str, dict[str, Any]] = {
    "/runs/{run}/marks": {
        **{"annotator": "Asha", "conversation": "a", "turn": 0, **MISSED},
        **{"adjudicate": False, "takes": None},
    },
    "/runs/{run}/draw": {"annotator": "Asha"},
    "/talk": {"scenario": Experiment().scenario, "chatbot": "none", "detectors": []},
    "/talk/none/say": {"text": "Hello"},
}
"""What pages send."""


VALUES = (
    *(
        "1e999",
        "-1",
        "99999999999999999999999",
        "9" * 400,
        "9" * 5000,
        "NaN",
        "null",
        "true",
        "1.5",
        "[]",
        "{}",
    ),
    *('""', '"\\ud800"', '"\\u0000"', '"٣"', '"\\u202e"', f'"{"x" * 200_000}"', "[" * 200 + "]" * 200),
    *("[[1]]", '{"a": {"b": []}}', '"1e999"', '"NaN"', '"' + "9" * 5000 + '"'),
)
"""JSON of any kind, and what some take for it."""


def bodies(asked: dict[str, Any]) -> Iterator[bytes]:
    """A request with each of its fields replaced by each of the values, and what is no object at all."""
    for field in asked:
        for value in VALUES:
            given = {name: json.dumps(held) for name, held in asked.items() if held is not None}
            others = given | {field: value}
            yield f"{{{', '.join(f'{json.dumps(name)}: {held}' for name, held in others.items())}}}".encode()
    yield from (value.encode() for value in VALUES)
    yield from (b"", b"\xff", b"\x00", b"{", b"a=b&c=d", b"--x\r\n\r\n--x--", b"\xef\xbb\xbf{}")


def fail_in_bodies(asker: Asker, place: str, step: int) -> list[tuple[bytes, Answer]]:
    target = place.format(run=asker.runs.list()[0].id)
    return [
        (body[:80], answer)
        for body in list(bodies(BODIES[place]))[::step]
        if (answer := asker.post(target, body)).status not in (200, 204, 400, 404)
    ]


@pytest.mark.parametrize("place", [place for place in BODIES if not place.endswith("/draw")])
def test_nothing_in_a_body_makes_a_page_fail(
    asker: Asker, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert fail_in_bodies(asker, place, 7) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("place", BODIES)
def test_nothing_at_all_in_a_body_makes_a_page_fail(asker: Asker, place: str) -> None:
    assert fail_in_bodies(asker, place, 1) == []


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "", "\xff"]
)
def test_another_kind_of_content_is_no_failure(asker: Asker, kind: str) -> None:
    headers: Any = {"content-type": kind}
    assert asker.post("/start/plan", b"a=b", **headers).status == 200


@pytest.mark.parametrize("place", ["/start", "/start/plan"])
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_nothing_in_an_experiment_file_makes_the_page_fail(
    asker: Asker, place: str, step: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = {**dict.fromkeys(Experiment.model_fields), **{"chatbots": ["none"], "model": "m"}}
    texts = [body.decode(errors="replace") for body in list(bodies(whole))[::step]]
    before = set(tmp_path.iterdir())
    answers = [asker.post(place, urlencode({"yaml": text}).encode()) for text in texts]
    assert {answer.status for answer in answers} == {200}
    assert (set(tmp_path.iterdir()), capfd.readouterr()) == (before, ("", ""))


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"yaml", b"yaml=%ff%00", b"a=b&" * 9999, b"yaml=" + b"[" * 9999]
)
def test_what_is_no_form_starts_nothing(asker: Asker, tmp_path: Path, body: bytes) -> None:
    before = set(tmp_path.iterdir())
    answer = asker.post("/start", body)
    assert (answer.status, '<p class="note">' in answer.body) == (200, True)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("place", BODIES)
def test_a_client_that_breaks_off_is_no_news(
    asker: Asker, place: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = place.format(run=asker.runs.list()[0].id)
    half = {"type": "http.request", "body": b'{"annot', "more_body": True}
    assert asker.ask("POST", target, half).status in (400, 404)
    assert capfd.readouterr() == ("", "")

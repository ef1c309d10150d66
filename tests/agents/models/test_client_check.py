"""The check of an endpoint before a run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.recording import Recording
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import LOCAL, Dead, failure, pool_at, refusal


async def test_check_passes_when_the_model_is_served() -> None:
    pool, _ = scripted_pool(lambda _: "Because.")
    await pool.check()


@pytest.mark.parametrize("broken", [refusal(429), refusal(503), httpx2.ReadError("reset")])
async def test_a_passing_trouble_does_not_end_the_check(broken: httpx2.Response | httpx2.ReadError) -> None:
    answers: list[Any] = [broken, broken, httpx2.Response(200, json={"data": [{"id": "m"}]})]

    def answer(request: httpx2.Request) -> httpx2.Response:
        told = answers.pop(0) if answers else httpx2.Response(400)
        if isinstance(told, Exception):
            raise told
        return httpx2.Response(told.status_code, content=told.content)

    await pool_at(httpx2.MockTransport(answer)).check()
    assert answers == []


async def test_check_names_the_models_that_are_served() -> None:
    pool = pool_at(ScriptedTransport(lambda _: "Because.", model="other"))
    with pytest.raises(ModelError, match=r"does not serve model 'm'; it serves: other\. Correct --model\."):
        await pool.check()


async def test_an_endpoint_that_lists_nothing_is_asked_for_an_answer() -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.method)
        return httpx2.Response(200, json={"data": []} if request.method == "GET" else completion("Yes"))

    await pool_at(httpx2.MockTransport(answer)).check()
    assert asked[:2] == ["GET", "POST"]


async def test_a_model_that_a_list_lacks_is_served_if_it_answers_and_another_name_does_not() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"data": [{"id": "base-model"}]})
        asked = json.loads(request.content)["model"]
        return httpx2.Response(200, json=completion("Yes")) if asked == "m" else refusal(404, "no deployment")

    pool = pool_at(httpx2.MockTransport(answer))
    await pool.get().check()
    assert (pool.get().root, pool.get().fitting.model) == (None, None)


@pytest.mark.parametrize(
    "told",
    [
        {"data": [{"id": "m0"}], "has_more": True, "last_id": "m0"},
        {"data": [{"id": "m0"}], "next": "http://evil.example/v1/models?page=2"},
        {"data": [{"id": "m0"}], "nextPageToken": "t"},
    ],
)
async def test_a_list_of_models_that_goes_on_elsewhere_is_not_followed(told: dict[str, Any]) -> None:
    asked: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(f"{request.method} {request.url}")
        return httpx2.Response(200, json=told if request.method == "GET" else completion("Yes"))

    await pool_at(httpx2.MockTransport(answer)).check()
    assert asked[:2] == [f"GET {LOCAL}/models", f"POST {LOCAL}/chat/completions"]
    assert not any("evil" in one for one in asked)


async def test_an_alias_is_a_name_of_the_model() -> None:
    told = {"data": [{"id": "m-0709", "aliases": ["m", "m-latest"], "root": "r"}]}

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json=told if request.method == "GET" else completion("Yes"))

    pool = pool_at(httpx2.MockTransport(answer))
    await pool.check()
    assert pool.get().root == "r"


async def test_a_list_of_models_that_breaks_off_is_none() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, json={"success": False, "message": "no list"})
        return httpx2.Response(200, json=completion("Yes"))

    await pool_at(httpx2.MockTransport(answer)).check()


@pytest.mark.parametrize("surplus", ["/chat/completions", "/models"])
async def test_an_address_that_is_too_long_is_told(surplus: str) -> None:
    pool = pool_at(httpx2.MockTransport(lambda _: httpx2.Response(404)), url=f"{LOCAL}{surplus}/")
    with pytest.raises(ModelError, match=rf"\(status 404\)\. Give --base-url without {surplus}\.$"):
        await pool.check()


@pytest.mark.parametrize("status", [200, 404, 405])
async def test_an_address_without_a_version_is_told(status: int) -> None:
    page = httpx2.Response(status, text="<!doctype html><title>Open WebUI</title>")
    said = await failure(pool_at(httpx2.MockTransport(lambda _: page), url="http://127.0.0.1:9").check())
    assert said.endswith("). Does the base URL end where an OpenAI-compatible API begins (usually /v1)?")


async def test_a_list_of_models_that_fails_alone_does_not_end_the_check() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return refusal(500) if request.method == "GET" else httpx2.Response(200, json=completion("Yes"))

    await pool_at(httpx2.MockTransport(answer)).check()


async def test_check_says_that_nobody_answers() -> None:
    with pytest.raises(
        ModelError, match=f"no OpenAI-compatible endpoint answers at {LOCAL} .*Start a server"
    ):
        await pool_at(Dead()).check()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx2.Response(500, extensions={"reason_phrase": b"sk-canary-1"}), r"status 500"),
        (httpx2.Response(200, text="[" * 200_000), r"no JSON"),
        (httpx2.Response(200, json={"data": [7]}), r".*"),
        (httpx2.Response(200, json={"data": {"sk-canary-1": 1}}), r".*"),
        (httpx2.Response(200, json=["sk-canary-1"]), r".*"),
    ],
)
async def test_what_is_no_list_of_models_is_told_on_one_line_without_the_key(
    answer: httpx2.Response, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    transport = httpx2.MockTransport(lambda _: answer)
    said = await failure(pool_at(transport, url="https://models.example/v1").check())
    at = r"no OpenAI-compatible endpoint answers at https://models\.example/v1"
    assert re.match(rf"{at} \({reason}\)\. Start a server", said)
    assert "canary" not in said
    assert "\n" not in said


async def test_a_wrong_key_is_told_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    transport = httpx2.MockTransport(lambda _: httpx2.Response(401, text="Bearer sk-canary-1 is wrong"))
    assert await failure(pool_at(transport, url="https://models.example/v1").check()) == (
        "no OpenAI-compatible endpoint answers at https://models.example/v1 (status 401: Bearer [key] is "
        "wrong). Look at the key in OPENAI_API_KEY, or correct --base-url."
    )


@pytest.mark.parametrize(
    ("location", "told"),
    [
        *(
            (location, f"redirects (status 302) to {to}. Give that address as the base URL.")
            for location, to in (
                ("https://models.example/api/v1/models?t=sk-canary-1", "https://models.example/api/v1"),
                ("/login", "https://models.example/login"),
                ("http://u:password@host/v1", "http://host/v1"),
            )
        ),
        *(
            (location, "gave no reply but status 302. Correct the base URL.")
            for location in ("http://SK-Canary-1/", "")
        ),
    ],
)
async def test_a_redirect_is_not_followed_but_told_without_the_key(
    location: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "SK-Canary-1" if "SK" in location else "sk-canary-1")
    redirect = httpx2.Response(302, headers={"Location": location} if location else {})
    pool = pool_at(httpx2.MockTransport(lambda _: redirect), url="https://models.example/v1")
    assert await failure(pool.check()) == f"https://models.example/v1/models {told}"


async def test_many_served_models_are_told_in_brief() -> None:
    names = {"data": [{"id": f"sk-canary-{number}"} for number in range(100_000)]}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=names))
    with pytest.raises(ModelError, match="does not serve model 'm'; it serves: sk-canary-0, ") as caught:
        await pool_at(transport).check()
    assert len(str(caught.value)) < 500


async def test_nothing_is_checked_when_a_recording_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"kind":"other","key":"another","answer":1}\n')
    await pool_at(Dead(), recording=Recording.replay(path)).check()

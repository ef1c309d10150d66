"""Which failures are tried again, after which pause, and when it is enough; in virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from email.utils import formatdate
from itertools import count
from typing import Any

import httpx2
import pytest
from tenacity import wait_fixed

from hallulab.agents.models.answers import ModelError, RefusedRequest
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.probe import abilities_of
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, Dead, failure, in_turn, pool_at, refusal
from tests.virtual_time import at_once


def patient_pool(script: Any, timeout_s: float = 300.0) -> tuple[ModelPool, ScriptedTransport]:
    """A pool as runs have it: tries without number, a second apart."""
    return scripted_pool(script, timeout_s=timeout_s, attempts=None, backoff=wait_fixed(1))


def busy(status: int = 429, message: str = "slow down", **headers: str) -> httpx2.Response:
    """A refusal with headers; `_` in their names stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, json={"error": {"message": message}})


async def ask(pool: ModelPool) -> str:
    return await pool.session("chatbot").text("generate", QUESTION)


class Silent(httpx2.AsyncBaseTransport):
    """Never answers."""

    def __init__(self) -> None:
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_tried_until_it_has_passed(status: int) -> None:
    @at_once
    async def run() -> None:
        pool, transport = patient_pool(in_turn(*[refusal(status)] * 50, "Because."))
        assert await ask(pool) == "Because."
        assert (len(transport.requests), time.perf_counter()) == (51, pytest.approx(50.0))

    run()


@at_once
async def test_the_timeout_is_the_total_of_all_tries_and_pauses() -> None:
    pool, transport = patient_pool(lambda _: busy(503, "Loading model"), timeout_s=20.0)
    with pytest.raises(RefusedRequest, match=r"with status 503: Loading model$"):
        await ask(pool)
    assert len(transport.requests) > 19
    assert 19.0 < time.perf_counter() < 20.0


@at_once
async def test_one_try_may_take_until_the_end_of_the_total() -> None:
    transport = Silent()
    pool = pool_at(transport, timeout_s=60.0, attempts=None)
    session = pool.session("chatbot")
    said = await failure(session.text("generate", QUESTION))
    assert said == f"model 'm' at {LOCAL} did not answer in time. Raise --timeout or lower --concurrency."
    assert (transport.tries, time.perf_counter()) == (1, pytest.approx(60.0))
    assert [call.error for call in session.calls] == [said]


@at_once
async def test_a_later_try_has_what_is_left_and_the_last_refusal_is_told() -> None:
    class OnceBusy(Silent):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            if not self.tries:
                self.tries += 1
                await asyncio.sleep(40)
                return busy(503, "Loading model")
            return await super().handle_async_request(request)

    pool = pool_at(OnceBusy(), timeout_s=60.0, attempts=None, backoff=wait_fixed(5))
    with pytest.raises(ModelError, match="status 503: Loading model"):
        await ask(pool)
    assert time.perf_counter() == pytest.approx(60.0)


@at_once
async def test_waiting_for_others_does_not_count() -> None:
    class Slow(ScriptedTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            await asyncio.sleep(4.0)
            return await super().handle_async_request(request)

    pool = pool_at(Slow(lambda _: "ok"), timeout_s=5.0, concurrency=1, attempts=None)
    sessions = [pool.session("chatbot", seed) for seed in range(3)]
    assert await asyncio.gather(*(session.text("a", QUESTION) for session in sessions)) == ["ok"] * 3


async def test_a_stop_of_this_process_is_no_time_of_the_endpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A try seems to take an hour of a limit of five seconds, and another one follows."""
    hours = count()
    monkeypatch.setattr("hallulab.agents.models.transport.time.perf_counter", lambda: 3600.0 * next(hours))
    pool, transport = scripted_pool(in_turn(refusal(503), "Because."), timeout_s=5.0)
    assert await ask(pool) == "Because."
    assert len(transport.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 501])
async def test_a_refusal_that_lasts_ends_at_once(status: int) -> None:
    pool, transport = patient_pool(lambda _: refusal(status, "too long"))
    with pytest.raises(ModelError, match=f"refused the request with status {status}: too long$"):
        await ask(pool)
    assert len(transport.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"message": "You exceeded your current quota, please check your plan.", "code": "insufficient_quota"},
        {"message": "Your credit balance is too low.", "type": "rate_limit_error"},
        {"message": "Insufficient balance", "code": "1113"},
    ],
)
async def test_a_quota_that_is_used_up_is_not_waited_for(error: dict[str, str]) -> None:
    pool, transport = patient_pool(lambda _: httpx2.Response(429, json={"error": error}))
    with pytest.raises(ModelError, match="status 429: "):
        await ask(pool)
    assert len(transport.requests) == 1


@at_once
async def test_a_quota_for_a_minute_is_waited_for_as_gemini_tells() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "25.5s"}]
    told = [{"error": {"code": 429, "message": "You exceeded your current quota.", "details": details}}]
    pool, _ = patient_pool(in_turn(httpx2.Response(429, json=told), "Because."))
    assert await ask(pool) == "Because."
    assert time.perf_counter() == pytest.approx(26.5)


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0.5"}, 0.5),
        ({"retry_after_ms": "12000", "Retry_After": "99"}, 12.0),
        ({"retry_after_ms": "soon", "Retry_After": "7"}, 7.0),
    ],
)
def test_an_endpoint_is_asked_again_when_it_says(headers: dict[str, str], pause: float) -> None:
    @at_once
    async def run() -> None:
        pool, _ = patient_pool(in_turn(busy(**headers), "Because."), timeout_s=60.0)
        assert await ask(pool) == "Because."
        assert time.perf_counter() == pytest.approx(pause + 1.0)

    run()


@at_once
async def test_a_date_to_come_again_is_waited_for() -> None:
    told = formatdate(time.time() + 25, usegmt=True)
    pool, _ = patient_pool(in_turn(busy(Retry_After=told), "Because."), timeout_s=60.0)
    assert await ask(pool) == "Because."
    assert 20.0 < time.perf_counter() < 27.0


@at_once
async def test_an_endpoint_that_says_when_is_asked_however_often() -> None:
    pool, transport = scripted_pool(in_turn(*[busy(Retry_After="0.01")] * 5, "Because."), attempts=2)
    assert await ask(pool) == "Because."
    assert (len(transport.requests), time.perf_counter()) == (6, pytest.approx(0.05))


@pytest.mark.parametrize("told", [{"Retry_After": "3600"}, {"retry_after_ms": "3600000"}])
async def test_a_wish_beyond_the_total_ends_at_once_and_is_told(told: dict[str, str]) -> None:
    pool, transport = patient_pool(lambda _: busy(**told), timeout_s=20.0)
    assert await failure(ask(pool)) == (
        "model 'scripted' at http://127.0.0.1:9/v1 refused the request with status 429: slow down (It wants "
        "to be asked again in 3,600 seconds; --timeout is 20.)"
    )
    assert len(transport.requests) == 1


@pytest.mark.parametrize("told", ["soon", "nan", "inf", "-1", "Mon, 99 Nev 2026"])
async def test_a_pause_that_is_no_time_is_not_one(told: str) -> None:
    pool, transport = scripted_pool(lambda _: busy(Retry_After=told), attempts=2)
    with pytest.raises(ModelError, match=r"status 429: slow down$"):
        await ask(pool)
    assert len(transport.requests) == 2


class Restarting(ScriptedTransport):
    """Answers, is gone for some seconds, and answers again."""

    def __init__(self, until: float) -> None:
        super().__init__(lambda _: "ok")
        self.until = until
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        now = asyncio.get_running_loop().time()
        if self.requests and now < self.until:
            raise httpx2.ConnectError("All connection attempts failed", request=request)
        return await super().handle_async_request(request)


@at_once
async def test_a_server_that_starts_anew_in_the_middle_of_a_run_is_waited_for() -> None:
    pool = pool_at(Restarting(100.0), attempts=None, backoff=wait_fixed(1))
    assert await pool.session("chatbot", 1).text("a", QUESTION) == "ok"
    assert await pool.session("chatbot", 2).text("b", QUESTION) == "ok"
    assert time.perf_counter() == pytest.approx(100.0)


@at_once
async def test_a_server_that_stays_away_holds_up_the_run_once() -> None:
    transport = Restarting(1e9)
    pool = pool_at(transport, timeout_s=20.0, attempts=None, backoff=wait_fixed(1))
    await pool.session("chatbot", 0).text("a", QUESTION)
    for seed, tries in ((1, 20), (2, 1), (3, 1)):
        before = transport.tries
        with pytest.raises(ModelError, match="cannot be reached"):
            await pool.session("chatbot", seed).text("b", QUESTION)
        assert transport.tries - before >= 1 if tries == 1 else tries
    assert time.perf_counter() == pytest.approx(20.0, abs=2.0)


@at_once
async def test_an_address_where_nobody_ever_answered_is_told_soon() -> None:
    transport = Dead()
    pool = pool_at(transport, attempts=None, backoff=wait_fixed(1))
    said = await failure(ask(pool))
    assert said == f"model 'm' at {LOCAL} cannot be reached. Is the server running?"
    assert transport.tries == 4


@at_once
async def test_an_error_with_status_200_is_that_error() -> None:
    limited = httpx2.Response(200, json={"error": {"code": 429, "message": "Rate limited upstream"}})
    pool, transport = patient_pool(in_turn(*[limited] * 9, "Because."))
    assert await ask(pool) == "Because."
    assert len(transport.requests) == 10


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"code": 400, "message": "too long"}}, "refused the request with status 400: too long"),
        ({"object": "error", "code": 401, "message": "no key"}, "the request with status 401: no key"),
        ({"error": {"type": "invalid_request_error", "message": "no such model"}}, "400: no such model"),
        ({"detail": "not found", "status": 404}, "with status 404: not found"),
    ],
)
async def test_an_error_with_status_200_that_lasts_ends_at_once(body: dict[str, Any], told: str) -> None:
    pool, transport = patient_pool(lambda _: httpx2.Response(200, json=body))
    with pytest.raises(RefusedRequest, match=f"{told}$"):
        await ask(pool)
    assert len(transport.requests) == 1


def broken_choice() -> dict[str, Any]:
    """A completion whose upstream failed."""
    answer = completion("A lost item is replaced by the")
    answer["choices"][0] |= {"finish_reason": "error", "error": {"code": 502, "message": "dropped"}}
    return answer


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            httpx2.Response(200, json={"error": "the model crashed"}),
            "with status 200 and an error: the model",
        ),
        (httpx2.Response(200, json={"choices": []}), "gave a chat completion without choices."),
        (httpx2.Response(200, json={"choices": [], "error": {"message": "oops"}}), "and an error: oops"),
        (httpx2.Response(200, text='{"choices": [{"mess'), "gave an answer that is no chat completion: '"),
        (httpx2.Response(200, text=""), r"gave an empty answer \(status 200\)"),
        (httpx2.Response(200, json=broken_choice()), "with status 200 and an error: dropped$"),
    ],
)
def test_an_answer_that_comes_broken_is_asked_for_four_times(answer: httpx2.Response, told: str) -> None:
    @at_once
    async def run() -> None:
        pool, transport = patient_pool(lambda _: answer)
        with pytest.raises(ModelError, match=told):
            await ask(pool)
        assert (len(transport.requests), len(pool.recording)) == (4, 0)

    run()


class BreakingOff(httpx2.AsyncByteStream):
    """A body that ends before its end."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"choices": ['
        raise httpx2.RemoteProtocolError("peer closed connection without sending complete message body")


@at_once
async def test_a_connection_that_breaks_off_within_the_answer_is_tried_four_times() -> None:
    pool, transport = patient_pool(lambda _: httpx2.Response(200, stream=BreakingOff()))
    with pytest.raises(ModelError, match=r"completions: the connection broke off before the"):
        await ask(pool)
    assert len(transport.requests) == 4


@at_once
async def test_four_broken_answers_are_enough_and_other_failures_do_not_count() -> None:
    broken = httpx2.Response(200, json={"choices": []})
    pool, transport = patient_pool(in_turn(*[busy(503)] * 9, *[broken, busy(503)] * 3, "Because."))
    assert await ask(pool) == "Because."
    pool, transport = patient_pool(lambda body: broken if len(transport.requests) % 2 else busy(503))
    with pytest.raises(ModelError, match="without choices"):
        await ask(pool)
    assert len(transport.requests) in (7, 8)


@at_once
async def test_an_endpoint_that_always_breaks_off_is_asked_four_times_for_its_abilities() -> None:
    pool, transport = patient_pool(lambda _: httpx2.Response(200, json=broken_choice()))
    assert not (await abilities_of(pool.get())).asked
    assert len(transport.requests) == 4


@at_once
async def test_before_a_run_an_endpoint_that_loads_is_waited_for() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        now = asyncio.get_running_loop().time()
        return httpx2.Response(200, json={"data": [{"id": "m"}]}) if now > 100 else refusal(503)

    pool = ModelPool(
        {"default": Endpoint("m", LOCAL)}, transport=httpx2.MockTransport(answer), backoff=wait_fixed(1)
    )
    await pool.get().check()
    assert time.perf_counter() == pytest.approx(101.0)


@at_once
async def test_a_question_about_abilities_that_is_refused_with_500_is_asked_a_few_times() -> None:
    """Once, once without log-probabilities, and four times again."""
    pool, transport = patient_pool(lambda _: refusal(500))
    assert not (await abilities_of(pool.get())).asked
    assert len(transport.requests) == 6


@at_once
async def test_an_endpoint_that_is_busy_is_asked_for_its_abilities_when_it_is_not() -> None:
    def answer(body: dict[str, Any]) -> Any:
        return refusal(503) if time.perf_counter() < 100 else {"Yes": 0.9, "No": 0.1}

    pool, _ = patient_pool(answer)
    assert (await abilities_of(pool.get())).asked
    assert time.perf_counter() >= 100.0


@pytest.mark.parametrize(
    ("trouble", "most"), [(refusal(500), 8), (refusal(502), 4), (httpx2.ReadError("reset"), 4)]
)
def test_before_a_run_what_may_last_is_tried_four_times(
    trouble: httpx2.Response | Exception, most: int
) -> None:
    tries = count()

    def answer(request: httpx2.Request) -> httpx2.Response:
        next(tries)
        if isinstance(trouble, Exception):
            raise trouble
        return httpx2.Response(trouble.status_code, content=trouble.content)

    @at_once
    async def run() -> None:
        endpoints = {"default": Endpoint("m", LOCAL)}
        pool = ModelPool(endpoints, transport=httpx2.MockTransport(answer), backoff=wait_fixed(1))
        with pytest.raises(ModelError, match="no OpenAI-compatible endpoint answers"):
            await pool.get().check()

    run()
    assert next(tries) == most

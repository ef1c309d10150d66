"""What endpoints say in place of a chat completion."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.complaints import (
    ToldError,
    describe_no_completion,
    find_busy_status,
    find_told_error,
    is_out_of_quota,
    put_in_one_line,
    read_complaint,
    read_delay,
)
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.receiving import JSON
from hallulab.testing.scripted import completion, scripted_pool
from tests.agents.models.endpoints import LOCAL, QUESTION, failure, in_turn

TWO_LONG = "Input validation error: `inputs` must be <= 4096."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "too long", "type": "invalid_request_error", "code": 400}}, "too long"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}, "too long"),
        ({"error": TWO_LONG, "error_type": "validation"}, TWO_LONG),
        ({"message": "Malformed input request"}, "Malformed input request"),
        ({"Message": "User is not authorized"}, "User is not authorized"),
        ({"detail": "Model is overloaded"}, "Model is overloaded"),
        (
            {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted", "type": "extra"}]},
            "body.seed: extra fields not permitted",
        ),
        (
            {"detail": [{"loc": ["body", "messages", 0], "msg": "no"}, {"loc": ["body", "n"], "msg": "no"}]},
            "body.messages.0: no; body.n: no",
        ),
        ([{"error": {"code": 400, "message": "Unknown name", "status": "INVALID_ARGUMENT"}}], "Unknown name"),
        (
            {"errors": [{"message": "AiError: no prompt", "code": 5006}], "success": False},
            "AiError: no prompt",
        ),
        ({"errors": ["one", {"message": "two"}]}, "one; two"),
        (
            {"errors": {"seed": ["is not allowed"], "n": ["is too large"]}},
            "seed: is not allowed; n: is too large",
        ),
        ({"error_code": 17, "error_msg": "Open api daily limit reached"}, "Open api daily limit reached"),
        ({"code": 1302, "msg": "too many"}, "too many"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}, "choices": None}, "login fail"),
        (
            {"error": "invalid_client", "error_description": "no such client"},
            "invalid_client: no such client",
        ),
        (
            {"error": "Unauthorized", "message": "The key is wrong", "statusCode": 401},
            "Unauthorized: The key is wrong",
        ),
        (
            {"type": "about:blank", "title": "Out of credit", "status": 403, "detail": "Your balance is 30."},
            "Out of credit: Your balance is 30.",
        ),
        ({"fault": {"faultstring": "Rate limit quota violation"}}, "Rate limit quota violation"),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "metadata": {"raw": '{"error":{"message":"busy"}}'},
                }
            },
            "Provider returned error: busy",
        ),
        ({"detail": {"error": {"message": "no such model"}}}, "no such model"),
        ({"error": {"message": "", "code": "context_length_exceeded"}}, "context_length_exceeded"),
        ({"err": "too long"}, "too long"),
        ({"ret": -1, "errMsg": "too long"}, "too long"),
        ({"exception": "too long"}, "too long"),
        ({"ResponseMetadata": {"Error": {"Code": "Long", "Message": "too long"}}}, "too long"),
        ({"Response": {"Error": {"Code": "Long", "Message": "too long"}, "RequestId": "1"}}, "too long"),
        ({"header": {"code": 10013, "message": "too long"}}, "too long"),
        ({"error": {"message": {"text": "too long"}}}, "too long"),
        (
            "<?xml version='1.0'?><Error><Code>X</Code><Message>Access Denied</Message></Error>",
            "Access Denied",
        ),
        ("too long", "too long"),
        (
            "<html><head><title>401 Authorization\n Required</title></head></html>",
            "401 Authorization Required",
        ),
        ("<!DOCTYPE html><body><h1>Bad &amp; worse</h1></body>", "Bad & worse"),
        ({}, ""),
        ({"error": {}}, ""),
        ({"code": 3}, ""),
        ([], ""),
        (None, ""),
    ],
)
def test_an_endpoints_own_words_are_found_in_each_form(body: Any, words: str) -> None:
    assert read_complaint(body) == words


def test_words_are_one_short_printable_line() -> None:
    assert put_in_one_line("a\x1b[31m b\n\u202ec" + "x" * 1000) == "a [31m b c" + "x" * 290


def test_words_that_are_nested_too_deep_are_not_looked_for() -> None:
    body: Any = "no"
    for _ in range(1000):
        body = {"error": body}
    assert read_complaint(body) == ""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"error": {"code": 429, "message": "slow"}}, ToldError(429, "slow")),
        ({"error": {"code": "503", "message": "slow"}}, ToldError(503, "slow")),
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, ToldError(503, "Overloaded")),
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, ToldError(429, "slow")),
        ({"error": {"status": "RESOURCE_EXHAUSTED", "message": "slow"}}, ToldError(429, "slow")),
        ({"error": {"code": "insufficient_quota", "message": "pay"}}, ToldError(402, "pay")),
        (
            {"object": "error", "code": 400, "message": "long", "type": "BadRequestError"},
            ToldError(400, "long"),
        ),
        ({"detail": "Internal"}, ToldError(None, "Internal")),
        ({"error": "the model crashed"}, ToldError(None, "the model crashed")),
        ({"choices": [], "error": {"message": "oops", "code": 502}}, ToldError(502, "oops")),
        ({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rpm"}}, ToldError(None, "rpm")),
        (
            {"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}},
            ToldError(429, "rate limit exceeded(RPM)"),
        ),
        ({"message": "slow", "code": 429}, ToldError(429, "slow")),
        ({"status": "error", "message": "crashed"}, ToldError(None, "crashed")),
        ({"success": False}, ToldError(None, "")),
        ([{"error": {"code": 401, "message": "key"}}], ToldError(401, "key")),
        ({"message": "Hello, how can I help?"}, None),
        ({"answer": "3 euros", "detail": "the fee"}, None),
        ({"object": "list", "data": []}, None),
        ({"choices": []}, None),
        ({**completion("ok"), "error": None}, None),
        ({**completion("ok"), "error": {"code": 0, "message": "success"}}, None),
        ({**completion("ok"), "base_resp": {"status_code": 0, "status_msg": ""}}, None),
        (
            {**completion("ok"), "base_resp": {"status_code": 1027, "status_msg": "output sensitive"}},
            ToldError(None, "output sensitive"),
        ),
        *(({**completion("ok"), "error": told}, None) for told in ("None", "null", "OK", "no error")),
        (completion("The error is mine."), None),
        (None, None),
    ],
)
def test_an_error_with_a_status_of_success_is_found(body: Any, found: ToldError | None) -> None:
    assert find_told_error(body) == found


WHERE = " Does the base URL end where an OpenAI-compatible API begins (usually /v1)?"


@pytest.mark.parametrize(
    ("status", "text", "told"),
    [
        (
            202,
            '{"job_id": "j1"}',
            "accepted the request (status 202) and gave no reply. hallulab asks for the result of a job "
            "later only of a bot of the kind `http`.",
        ),
        (204, "", f"gave an empty answer (status 204).{WHERE}"),
        (
            200,
            "<!doctype html><title>Sign in</title>",
            f"gave a web page ('Sign in') and no chat completion.{WHERE}",
        ),
        (200, "<html><body>", f"gave a web page and no chat completion.{WHERE}"),
        (
            200,
            '{"object": "text_completion", "choices": [{"text": "Because.", "index": 0}]}',
            "gave a completion of a text, and no chat completion. Give the base URL of an API that answers "
            "chats at /chat/completions.",
        ),
        (
            200,
            'data: {"choices": []}',
            "gave a stream of events that it does not call one (its content type is no text/event-stream).",
        ),
        (
            200,
            '{"choices": [], "prompt_filter_results": []}',
            "gave a chat completion without choices: its content filter withheld the answer.",
        ),
        (200, "OK", f"gave an answer that is no chat completion: 'OK'.{WHERE}"),
        (200, '{"answer": 3}', f"gave an answer that is no chat completion: '{{\"answer\": 3}}'.{WHERE}"),
    ],
)
def test_what_is_no_completion_is_named_as_what_it_is(status: int, text: str, told: str) -> None:
    body = json.loads(text) if text.startswith("{") else {}
    assert describe_no_completion(status, body, text) == told


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, br"])
async def test_a_packing_that_nobody_asked_for_is_named(packing: str) -> None:
    packed = httpx2.Response(
        200, headers={"Content-Encoding": packing}, stream=httpx2.ByteStream(b"\x8b\x02")
    )
    pool, _ = scripted_pool(lambda _: packed)
    assert await failure(pool.session("chatbot").text("generate", QUESTION)) == (
        f"{LOCAL}/chat/completions gave an answer packed with '{packing.split()[-1]}', which was not asked "
        "for. Switch that off at the endpoint, or at a proxy before it."
    )


async def test_a_refusal_without_words_says_so() -> None:
    pool, _ = scripted_pool(lambda _: httpx2.Response(422, json={}))
    with pytest.raises(ModelError, match=r"refused the request with status 422 and gave no reason\.$"):
        await pool.session("chatbot").text("generate", QUESTION)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "30, 30"}, 30.0),
        ({"retry-after": "30s"}, 30.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": '"30"'}, 30.0),
        ({"retry-after": "1970-01-01T00:01:00Z"}, 50.0),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "soon", "retry-after": "4"}, 4.0),
        ({}, None),
    ],
)
def test_a_wish_to_be_asked_later_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert read_pause(headers, now=10.0) == seconds


@pytest.mark.parametrize("told", ["1764273605", "1764273605000", "2025-11-27T20:00:05Z"])
def test_a_wish_may_be_a_date_in_any_form(told: str) -> None:
    assert read_pause({"retry-after": told}, now=1764273600.0) == 5.0


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ({"error": {"details": [{"retryDelay": "25s"}]}}, 25.0),
        ({"retry_after": 7}, 7.0),
        ({"detail": {"retry_after_seconds": 3.5}}, 3.5),
        ({"error": {"message": "Rate limit reached. Please try again in 6m0s. See billing."}}, 360.0),
        ({"error": {"message": "Please retry after 12 seconds."}}, 12.0),
        ({"error": {"message": "Please try again in 250ms."}}, 0.25),
        ({"error": {"message": "Please wait 5 minutes."}}, 300.0),
        ({"error": {"message": "Try again in 5% of cases."}}, None),
        ({"error": "Model m is currently loading", "estimated_time": 20.5}, 20.5),
        ({"retry_after": True}, None),
        ({}, None),
    ],
)
def test_a_complaint_tells_when_to_come_again(body: Any, seconds: float | None) -> None:
    assert read_delay(body) == seconds


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"__type": "ThrottlingException", "message": "Too many requests"}, 429),
        ({"error": {"code": 403, "status": "RESOURCE_EXHAUSTED"}}, 429),
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, 503),
        ({"error": {"code": "insufficient_quota"}}, None),
        ({"error": {"code": "model_unavailable"}}, None),
        ({"error": {"code": 429}}, None),
    ],
)
def test_a_busy_service_says_so_by_the_name_of_its_error(body: Any, status: int | None) -> None:
    assert find_busy_status(body) == status


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"__type": "ThrottlingException", "message": "Too many requests"}),
        (403, {"error": {"code": 403, "status": "RESOURCE_EXHAUSTED", "message": "per minute"}}),
        (404, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
        (424, {"error": "Request failed during generation", "error_type": "generation"}),
        (498, {"error": {"message": "Flex tier capacity exceeded"}}),
    ],
)
async def test_a_service_that_is_busy_with_an_odd_status_is_asked_again(status: int, body: Any) -> None:
    pool, transport = scripted_pool(in_turn(httpx2.Response(status, json=body), "It costs 3 €."))
    assert await pool.session("chatbot").text("generate", QUESTION) == "It costs 3 €."
    assert len(transport.requests) == 2
    assert pool.get().fitting.tell_needs(seed=True) == ()


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        ("Größe".encode("latin-1"), "application/json; charset=ISO-8859-1", "Größe"),
        ("Größe".encode(), "application/json; charset=iso-8859-1", "Größe"),
        ("三元".encode("gb18030"), "application/json;charset=GBK", "三元"),
        ("Größe".encode("latin-1"), "application/json; charset=no-such", "Größe"),
        ("Größe".encode("latin-1"), "application/json", "Größe"),
        ("L’été coûte 3 €".encode("cp1252"), "application/json", "L’été coûte 3 €"),
        ("Größe, größer, ".encode() + b"\xfc", "application/json", "Größe, größer, �"),
        ("���".encode(), "application/json", "���"),
    ],
)
async def test_letters_are_read_as_they_were_written(content: bytes, kind: str, text: str) -> None:
    body = json.dumps(completion("TEXT")).encode().replace(b"TEXT", content)
    answer = httpx2.Response(200, content=body, headers={"Content-Type": kind})
    pool, _ = scripted_pool(lambda _: answer)
    assert await pool.session("chatbot").text("generate", QUESTION) == text


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("content", ["Цена".encode("cp1251"), "三元，五天".encode("gbk")])
async def test_letters_that_nobody_names_are_no_reply(content: bytes, kind: str) -> None:
    body = b"data: " * (kind != JSON) + json.dumps(completion("TEXT")).encode().replace(b"TEXT", content)
    answer = httpx2.Response(200, content=body + b"\n\n", headers={"Content-Type": kind})
    pool, transport = scripted_pool(lambda _: answer)
    told = await failure(pool.session("chatbot").text("generate", QUESTION))
    assert told.startswith("the answer's letters are not UTF-8, and its content type names no charset")
    assert len(transport.requests) == 1


@pytest.mark.parametrize("name", ["utf-8", "none", "binary"])
async def test_a_packing_that_is_none_is_none(name: str) -> None:
    body = httpx2.ByteStream(json.dumps(completion("It costs 3 €.")).encode())
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, headers={"Content-Encoding": name}, stream=body))
    assert await pool.session("chatbot").text("generate", QUESTION) == "It costs 3 €."


@pytest.mark.parametrize(
    ("body", "out"),
    [
        (
            {
                "error": {
                    "message": "Rate limit reached. Try again in 20s. See billing.",
                    "code": "rate_limit",
                }
            },
            False,
        ),
        ({"error": {"message": "Your account is in arrears"}}, True),
        ({"error": {"message": "余额不足"}}, True),
        ({"error": {"message": "Budget has been exceeded! Current cost: 10.1"}}, True),
        ({"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, True),
        ({"error": {"message": "Limit: 200 requests / day. Please try again in 7m12s."}}, False),
        ({"error": {"code": "insufficient_quota", "message": "no"}}, True),
        ({"error": {"message": "This request requires more credits"}}, True),
        ({"error": {"message": "Rate limit reached for requests", "code": "rate_limit_exceeded"}}, False),
    ],
)
def test_a_used_up_quota_is_told_from_a_limit(body: Any, out: bool) -> None:
    assert is_out_of_quota(body) is out


def test_words_about_money_are_no_quota_where_the_headers_say_when_to_come_again() -> None:
    assert not is_out_of_quota({"error": {"message": "Too fast. Upgrade under billing."}}, pause=1.0)
    assert is_out_of_quota({"error": {"code": "insufficient_quota", "message": "no"}}, pause=1.0)

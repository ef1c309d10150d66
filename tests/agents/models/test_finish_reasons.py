"""Why an answer ended, in the words of endpoints, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.answers import BrokenAnswer, read_completion
from hallulab.agents.models.finish_reasons import find_break, name_ending, read_ending, says_why
from hallulab.agents.models.recording import Recording
from hallulab.testing.scripted import completion, scripted_pool
from tests.agents.models.endpoints import QUESTION, in_turn


def ended(reason: Any, text: str = "A lost item is replaced by", **choice: Any) -> dict[str, Any]:
    body = completion(text)
    body["choices"][0] |= {"finish_reason": reason, **choice}
    return body


def litellm(reason: str) -> dict[str, Any]:
    return {"provider_specific_fields": {"native_finish_reason": reason}}


@pytest.mark.parametrize(
    ("ending", "named", "reason"),
    [
        *(("whole", "stop", one) for one in ("stop", "STOP", "end_turn", "eos_token", "completed")),
        *(
            ("whole", "stop", one)
            for one in ("stop_sequence", "COMPLETE", "eos", "FINISH_REASON_STOP", "EndTurn")
        ),
        *(("calls", "function_calls", one) for one in ("tool_calls", "function_call", "tool_use")),
        *(("cut", "length", one) for one in ("length", "max_tokens", "MAX_TOKENS", "model_length")),
        *(("cut", "length", one) for one in ("maxTokens", "max_output_tokens", "incomplete", "ERROR_LIMIT")),
        *(("cut", "length", one) for one in ("model_context_window_exceeded", "output_token_limit_reached")),
        *(
            ("cut", "length", one)
            for one in ("REASON_MAX_LEN", "maxPredictedTokensReached", "maximum_tokens")
        ),
        *(("cut", "length", one) for one in ("FinishReason.MAX_TOKENS", "token_budget_exhausted")),
        *(("cut", "length", one) for one in ("repetition", "repeat", "compaction", "loop_detected")),
        *(
            ("whole", "stop", one)
            for one in ("REASON_STOP", "StopReason.end_turn", "eosFound", "end_of_text")
        ),
        *(("unknown", "unknown", one) for one in (None, "", " ", "null", "None", "qwerty", "完")),
        ("unknown", "unknown", "FINISH_REASON_UNSPECIFIED"),
    ],
)
def test_a_word_is_read_and_named(reason: str | None, ending: str, named: str) -> None:
    assert (read_ending(reason), name_ending(reason)) == (ending, named)


@pytest.mark.parametrize(
    "reason",
    [
        *("error", "content_filter", "SAFETY", "RECITATION", "abort", "cancelled", "canceled", "ERROR"),
        *("insufficient_system_resource", "network_error", "ERROR_TOXIC", "refusal", "upstream_error"),
        *("PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "OTHER", "guardrail_intervened", "timed_out"),
        *(
            "sensitive_filter",
            "sensitive",
            "blacklist",
            "MALFORMED_RESPONSE",
            "policy_violation",
            "not_finished",
        ),
        *(
            "prompt_blocked",
            "MODEL_ARMOR",
            "modelUnloaded",
            "userStopped",
            "server_shutdown",
            "out_of_memory",
            "load",
            "insufficient_credits",
            "no_healthy_upstream",
            "IMAGE_PROHIBITED_CONTENT",
        ),
    ],
)
def test_a_broken_answer_is_none(reason: str) -> None:
    assert read_ending(reason) == "broken"
    with pytest.raises(BrokenAnswer):
        read_completion(ended(reason))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (ended("stop"), None),
        (ended(None), None),
        (ended("stop", error=None), None),
        ({**ended("stop"), "error": None}, None),
        ({**ended("stop"), "error": {"code": 0, "message": "success"}}, None),
        ({**ended("stop"), "error": "None"}, None),
        (ended("error"), "the answer broke off (`finish_reason` 'error')."),
        (
            ended("error", error={"code": 502, "message": "Upstream\ndropped"}),
            "the answer broke off (`finish_reason` 'error': Upstream dropped).",
        ),
        (ended("stop", error="dropped"), "the answer broke off (`finish_reason` 'stop': dropped)."),
        ({**ended(None), "error": {"message": "busy"}}, "the answer broke off (an error in it: busy)."),
        (ended("stop", **litellm("error")), "the answer broke off (`finish_reason` 'error')."),
        (ended("content_filter"), "the server's content filter withheld the answer or a part of it."),
    ],
)
def test_what_broke_an_answer_is_told(body: dict[str, Any], words: str | None) -> None:
    assert find_break(body) == words


@pytest.mark.parametrize(
    ("reason", "told"), [("stop", True), ("error", True), ("", False), (None, False), ("null", False)]
)
def test_only_a_reason_ends_a_stream(reason: str | None, told: bool) -> None:
    assert says_why(reason) is told


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"finishReason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": None, "native_finish_reason": "MAX_TOKENS"}, "length"),
        ({"finish_reason": "stop", "native_finish_reason": "max_output_tokens"}, "length"),
        ({"finish_reason": "stop", "native_finish_reason": "end_turn"}, "stop"),
        ({"finish_reason": "stop", **litellm("repetition")}, "length"),
        ({"finish_reason": "stop", **litellm("eos_token")}, "stop"),
        ({"finish_reason": None, **litellm("MAX_TOKENS")}, "length"),
        ({"finish_reason": "", "done_reason": "length"}, "length"),
        ({"finish_reason": "stop", "stop_reason": "the length"}, "stop"),
        ({"stop_reason": 151645}, "unknown"),
    ],
)
def test_the_reason_is_found_in_other_fields(choice: dict[str, Any], named: str) -> None:
    body = ended(None)
    body["choices"][0] |= choice
    assert read_completion(body).finish_reason == named


@pytest.mark.parametrize(
    ("text", "tokens", "reason", "named"),
    [
        ("A lost item is replaced by", 20, "stop", "length"),
        ("A lost item is replaced by", 20, None, "length"),
        ("A lost item is replaced by", 19, "stop", "stop"),
        ("A lost item is replaced.", 20, "stop", "stop"),
    ],
)
def test_an_answer_that_used_up_its_tokens_in_a_sentence_is_cut_whatever_it_says(
    text: str, tokens: int, reason: str | None, named: str
) -> None:
    body = {**ended(reason, text), "usage": {"prompt_tokens": 9, "completion_tokens": tokens}}
    assert read_completion(body, limit=20).finish_reason == named


async def test_a_broken_answer_is_asked_again_and_not_recorded(tmp_path: Path) -> None:
    recording = Recording.record(tmp_path / "r.jsonl")
    script = in_turn(
        httpx2.Response(200, json=ended("error", error={"message": "dropped"})),
        httpx2.Response(200, json=ended("abort")),
        "A lost item is replaced by the reader.",
    )
    pool, transport = scripted_pool(script, recording=recording)
    session = pool.session("chatbot")
    assert await session.text("generate", QUESTION) == "A lost item is replaced by the reader."
    recording.close()
    assert len(transport.requests) == 3
    assert "replaced by the reader" in (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    assert "dropped" not in (tmp_path / "r.jsonl").read_text(encoding="utf-8")


async def test_an_endpoint_that_gives_an_empty_reason_with_whole_answers_is_read() -> None:
    pool, _ = scripted_pool(lambda _: httpx2.Response(200, json=ended("", text="Keep it for three weeks.")))
    session = pool.session("chatbot")
    assert await session.text("generate", QUESTION) == "Keep it for three weeks."
    assert [call.finish_reason for call in session.calls] == ["unknown"]


async def test_an_answer_that_breaks_off_every_time_is_a_failure_that_names_model_and_reason() -> None:
    body = ended("error", error={"message": "Upstream provider dropped the stream"})
    pool, transport = scripted_pool(lambda _: httpx2.Response(200, json=body), attempts=3)
    session = pool.session("chatbot")
    with pytest.raises(BrokenAnswer) as caught:
        await session.text("generate", QUESTION)
    assert len(transport.requests) == 3
    assert str(caught.value) == (
        "http://127.0.0.1:9/v1/chat/completions answered with status 200 and an error: "
        "Upstream provider dropped the stream"
    )
    assert [call.error for call in session.calls] == [str(caught.value)]

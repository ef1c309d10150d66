"""Why an answer ended: what endpoints call it, and whether the answer is whole, cut or broken.

A whole answer counts. One that was cut at a limit counts, and is told. A broken one is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from hallulab.agents.models.complaints import is_an_error, read_complaint

Ending = Literal["whole", "calls", "cut", "broken", "unknown"]
"""`whole`; `calls`: whole, with calls of functions; `cut`: at a limit of tokens; `broken`: by an error, a
filter or the server's end; `unknown`: the endpoint does not say, or uses a word that is not known."""

_WORDS: Mapping[Ending, str] = {
    "whole": """
        stop end_turn stop_sequence stop_token stop_words stop_string_found eos eos_token eos_found end_id
        end_of_sequence end_of_text end complete completed finish finished done normal success stopped
        stop_string finish_stop hit_stop eos_token_id eot im_end""",
    "calls": "tool_calls tool_call tool_use function_calls function_call",
    "cut": """
        length max_tokens max_new_tokens max_output_tokens max_length max_len model_length token_limit limit
        error_limit context_length context_window model_context_window_exceeded max_context maximum_tokens
        max_predicted_tokens_reached num_predict incomplete truncated pause_turn pause compaction""",
    "broken": """
        error content_filter content_filtered filtered safety image_safety recitation blocklist language
        other prohibited_content spii refusal error_toxic guardrail_intervened abort aborted cancel cancelled
        canceled interrupted timeout network_error insufficient_system_resource rate_limit
        rate_limit_exceeded quota_exceeded malformed_function_call unexpected_tool_call overloaded failed
        failure sensitive blacklist model_armor image_other rai responsible_ai user_stopped not_finished
        too_many_tool_calls missing_thought_signature escalation no_image load""",
}
"""Reasons of endpoints: OpenAI, Azure, Anthropic, Gemini and Vertex, Cohere, Mistral, TGI, vLLM, SGLang,
DeepSeek, Zhipu, OpenRouter, Bedrock, xAI, LM Studio, watsonx, GigaChat. Case and what is no letter do not
count."""

_PARTS: tuple[tuple[Ending, str], ...] = (
    (
        "broken",
        r"error|fail|filter|safety|abort|cancel|timeout|timedout|interrupt|unavailable|overload|disconnect"
        r"|unsafe|sensitive|blocked|^block$|moderat|violation|flagged|censor|jailbreak|malformed|unload|shutdown|crash"
        r"|exception|killed|preempt|outofmemory|^oom$|prohibited|credits|quota|upstream",
    ),
    (
        "cut",
        r"length|limit|max\w{0,12}token|max(?:output|context|len|time)|truncat|exceed|budget|outoftokens|full$"
        r"|^repe(?:at|tition)|degenerat|loop",
    ),
)
"""Parts of words that the table does not have."""

_OWNER = re.compile(r"^(?:finish|stop)?reason(?=.)")
"""Begins the names of an enumeration: `FinishReason.STOP`, `REASON_MAX_LEN`."""

_NATIVE = "native_finish_reason"
_ELSEWHERE = ("finishReason", _NATIVE, "stop_reason", "stopReason", "done_reason")
"""Fields of a choice that tell the reason where `finish_reason` does not; the first that does counts."""

_UNTOLD = frozenset({"null", "none", "unspecified", "finishreasonunspecified"})
"""Words that say that the endpoint does not say."""

_LEDGER: Mapping[str, str] = {
    "whole": "stop",
    "calls": "function_calls",
    "cut": "length",
    "unknown": "unknown",
}
"""AutoGen's words, which the ledger also uses."""

_LONGEST = 300
"""Characters of an endpoint's own words at most."""


def _plain(word: str) -> str:
    return re.sub(r"[\W\d_]+", "", word.lower())


_TABLE: Mapping[str, Ending] = {
    _plain(word): ending for ending, words in _WORDS.items() for word in words.split()
}


def read_ending(reason: str | None) -> Ending:
    """Return how an answer ended by its `finish_reason`.

    Many small servers give an empty reason with each whole answer. A stream that is not at its end
    has an empty one, too: see `says_why`.
    """
    if reason is None:
        return "unknown"
    word = _OWNER.sub("", _plain(reason), count=1) or _plain(reason)
    if not word or word in _UNTOLD:
        return "unknown"
    if word in _TABLE:
        return _TABLE[word]
    return next((ending for ending, parts in _PARTS if re.search(parts, word)), "unknown")


def says_why(reason: Any) -> bool:
    """Return whether a `finish_reason` of a stream says that the answer is at its end."""
    return isinstance(reason, str) and bool(_plain(reason)) and _plain(reason) not in _UNTOLD


def name_ending(reason: str | None) -> str:
    """Return the ledger's word for the `finish_reason` of an answer that is not broken."""
    return _LEDGER[read_ending(reason)]


def find_reason(choice: Mapping[str, Any]) -> str | None:
    """Return the reason why an answer ended, from whichever field of its choice tells it.

    A router that calls an answer whole counts less than the model's own server, which says that it was cut or
    broke: LiteLLM calls each reason whole that it does not know.
    """
    told, own = choice.get("finish_reason"), choice.get("provider_specific_fields")
    reason = told if isinstance(told, str) else None
    holders = (choice, own if isinstance(own, dict) else {})
    others = [one for held in holders for name in _ELSEWHERE if isinstance(one := held.get(name), str)]
    if read_ending(reason) == "unknown":
        return next((one for one in others if read_ending(one) != "unknown"), reason)
    native = [held.get(_NATIVE) for held in holders if read_ending(reason) == "whole"]
    worse = (one for one in native if isinstance(one, str) and read_ending(one) in ("cut", "broken"))
    return next(worse, reason)


def find_break(body: Mapping[str, Any]) -> str | None:
    """Return what broke a chat completion, in words for people; None: it is not broken."""
    choice = body["choices"][0]
    error = next((one for one in (choice.get("error"), body.get("error")) if is_an_error(one)), None)
    told = read_complaint(error)
    reason = find_reason(choice)
    if error is None and read_ending(reason) != "broken":
        return None
    if not told and reason is not None and "filter" in reason.lower():
        return "the server's content filter withheld the answer or a part of it."
    named = f"`finish_reason` {reason[:_LONGEST]!r}" if reason is not None else "an error in it"
    return f"the answer broke off ({named}{f': {told}' if told else ''})."

"""Calls of tools that a model writes into its text, because the server does not know its form."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

_TAG = r"tool_?calls?|\w{1,20}_tool_calls?|function_?calls?|tool_use|tool_code|use_mcp_tool|execute_tool"
_CALL = re.compile(
    rf"<(?:\w{{1,20}}:|[|｜]DSML[|｜])?(?:{_TAG})>\s*[\[{{<\w]|<function(?:=| name=)[\w.\"'-]{{1,200}}>"
    r"|<(?:tools?|call|function)>\s*[\[{]|<(?:web_?)?search(?:_query)?>\s*(?:<query>)?[^<\n]{1,300}</"
    r"|<(?:[|｜]DSML[|｜])?invoke name=|\[TOOL_?CALLS?\]\s*[\[{\w]|\[TOOL_REQUEST\]\s*[\[{]|<\|python_tag\|>"
    r"|<\|(?:tool_call|tool_calls|tool_call_start|tool_calls_section_begin|tool_call_begin|tool_call:begin"
    r"|action_start|start_action|python_start|tools_prefix)\|?>"
    r"|<\|FunctionCallBegin\|>|<[|｜]tool[▁_]calls?[▁_]begin[|｜]>|<start_function_call>|✿FUNCTION✿"
    r"|functools\[\{|^to=functions\.\w|^\w{1,80}\[ARGS\]\s*\{"
    r"|^\**(?:Action|行动|动作)\**[:：][^\n]{1,200}\n+\**(?:Action Input|行动输入|动作输入)\**[:：]"
    r"|^Action:\s{0,9}```json",
    re.IGNORECASE | re.MULTILINE,
)
_ALONE = re.compile(
    r"\A(?:Thought:.*\n)?Action:[ \t]*\w{1,80}(?:\[[^\n]*\]|\([^\n]*\))\Z"
    r"|\A(?:Thought:.*\n)?Action:\s*```(?:json)?\s*\{.*\}\s*```\Z"
    r"|\AThoughts?:.*\n(?:Code:\s*```|<code>)"
    r"|\A\[?(?!print\b)\w{1,80}(?:\.\w{1,80})?\((?:\w{1,80}=[^\n]*|\"[^\"\n]*\")?\)\]?\Z"
    r"|\A```tool_code\n.*```\Z|\Acall:\w{1,80}\{.*\}\Z",
    re.DOTALL,
)
"""A text that is nothing but a call: ReAct's, Python's, smolagents'."""
_NAME_FIRST = re.compile(r"\A(?:>>>)?\w[\w.-]{0,80}\n(\{.*\})\Z", re.DOTALL)
"""A tool's name and its arguments, as GLM-4 and Functionary write them."""
_CODE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"\A```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL | re.IGNORECASE)
_NAMES = ("name", "tool", "tool_name", "action", "function", "recipient_name")
_ARGUMENTS = frozenset({"arguments", "parameters", "args", "input", "action_input", "tool_input"})
_KEYS = {*_NAMES, *_ARGUMENTS, "id", "call_id", "type"}
_HOLDERS = ("tool_calls", "function_call", "tool_uses")
_LONGEST_LITERAL = 10_000
_BEFORE = re.compile(r"(?:\A|[.!?:…\n>])\s*\Z")


def writes_call(text: str) -> bool:
    """Return whether a text calls a tool: by a mark, or as a JSON object that is nothing but the call.

    The object may be a last line of its own. A mark counts at the beginning of the text, a line or a
    sentence, and outside code, where it is quoted.
    """
    plain = text.strip()
    if _is_call(plain) or _is_call(plain.rpartition("\n")[2]):
        return True
    if _CALL.search(plain) is None:
        return False
    shown = _CODE.sub(lambda code: " " * len(code[0]), plain)
    return any(
        _BEFORE.search(shown[max(0, call.start() - 3) : call.start()]) for call in _CALL.finditer(shown)
    ) or (_CALL.match(shown) is not None)


def _is_call(text: str) -> bool:
    named = _NAME_FIRST.match(text)
    if _ALONE.match(text) or (named and isinstance(_parse(named[1]), dict)):
        return True
    fenced = _FENCED.match(text) if text.startswith("```") else None
    inner = fenced[1].strip() if fenced else text
    if not inner.startswith(("{", "[")) or not any(name in inner for name in (*_NAMES, *_HOLDERS)):
        return False
    whole = _parse(inner)
    found = [_parse(line) for line in inner.splitlines() if line.strip()] if whole is None else [whole]
    calls: list[Any] = []
    for one in found:
        held = next((one[name] for name in _HOLDERS if name in one), one) if isinstance(one, dict) else one
        calls += held if isinstance(held, list) else [held]
    return bool(calls) and all(map(_has_call, calls))


def _parse(text: str) -> Any:
    """Return the value of JSON, or of Python with its single quotation marks; None: it is neither."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text) if len(text) <= _LONGEST_LITERAL else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _has_call(value: Any) -> bool:
    if not isinstance(value, dict) or not value.keys() <= _KEYS:
        return False
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in _NAMES if key in value), None)
    return isinstance(name, str) and name.lower() != "final answer" and bool(value.keys() & _ARGUMENTS)

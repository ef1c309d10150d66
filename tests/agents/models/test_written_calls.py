"""Calls of tools that are written as text."""

from __future__ import annotations

import pytest

from hallulab.agents.models.written_calls import writes_call


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "search", "arguments": {}}\n</tool_call>',
        'I look it up.\n\n<tool_call>\n{"name": "search"',
        'Let me look. <tool_call>{"name": "search"}</tool_call>',
        '[TOOL_CALLS][{"name": "search", "arguments": {}}]',
        '[TOOL_CALLS]search{"q": 1}',
        '<|python_tag|>search.call(query="fee")',
        '<function=search>{"q": 1}</function>',
        "<function_calls>\n<invoke name='search'>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0",
        '{"name": "search", "arguments": {"q": 1}}',
        ' {"name": "search", "parameters": {}}\n',
        '```json\n{"name": "search", "arguments": {}}\n```',
        '[{"name": "search", "arguments": {}}]',
        '{"type": "function", "function": {"name": "search", "arguments": "{}"}}',
        'Thought: I look.\nAction: search\nAction Input: {"q": 1}',
        "Thought: I look.\nAction: search[fee]",
        '<tool_use>\n{"name": "search"}\n</tool_use>',
        '<functioncall> {"name": "search"}',
        "<longcat_tool_call>search</longcat_tool_call>",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="search">',
        '<|FunctionCallBegin|>[{"name": "search"}]',
        "```tool_code\nprint(search('fee'))\n```",
        'to=functions.search code{"q": 1}',
        "[search(query='fee')]",
        '{"recipient_name": "functions.search", "parameters": {"q": 1}}',
        '{"tool_uses": [{"recipient_name": "functions.search", "parameters": {}}]}',
        "<web_search>\n<query>late fee</query>\n</web_search>",
        'call:search{"q": 1}',
        'search(query="fee")',
        '{"name": "search", "arguments": {}}\n{"name": "search", "arguments": {}}',
        '{"tool_calls": [{"function": {"name": "search", "arguments": "{}"}}]}',
        '{"name": "search", "input": {"q": 1}}',
        '{"action": "search", "action_input": "fee"}',
        '{"function": "search", "arguments": {"q": 1}}',
        '{"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c"}',
        "{'name': 'search', 'arguments': {'q': 'fee'}}",
        'I look it up.\n{"name": "search", "arguments": {"q": 1}}',
        '[ToolCall]{"name": "search"}',
        '<tool>{"name": "search"}</tool>',
        '<function name="search">{"q": 1}</function>',
        "I look it up.\n<search>fee</search>",
        "**Action:** search\n**Action Input:** fee",
        'Thought: I look.\nAction:\n```json\n{"action": "search", "action_input": "fee"}\n```',
        "行动：search\n行动输入：fee",
        'search("fee")',
        '{"function": "search", "arguments": {}}',
        '<TOOLCALL>[{"name": "search", "arguments": {}}]</TOOLCALL>',
        '<|python_start|>[search(q="fee")]<|python_end|>',
        '<|tools_prefix|>[{"search": {"q": "fee"}}]<|tools_suffix|>',
        'search[ARGS]{"q": "fee"}',
        'search\n{"q": "fee"}',
        '>>>search\n{"q": "fee"}',
        'Action: ```json\n[{"tool_name": "search", "parameters": {}}]\n```',
        "Thoughts: I look.\n<code>\nsearch('fee')\n</code>",
        "Thought: I look.\nAction: search('fee')",
    ],
)
def test_a_written_call_is_one(text: str) -> None:
    assert writes_call(text)


@pytest.mark.parametrize(
    "text",
    [
        "It costs 3 €.",
        'The model writes <tool_call>{"name"}</tool_call> to call one.',
        "Write `<tool_call>{}</tool_call>`.",
        "```\n<tool_call>\n{}\n```\nSo it is done.",
        '{"name": "Asha", "age": 3}',
        '{"name": "Asha", "arguments": {}, "verdict": true}',
        '{"reason": "x"}',
        "The name and the arguments.",
        '[{"name": "search", "arguments": {}}, 7]',
        '{"action": "Final Answer", "action_input": "It costs 3 €."}',
        "Action: pay the fee at the desk.",
        "See the list (page 3).",
        "The <tool>hammer</tool> is free.",
        "Use the <search> box.",
        'It is free.\n{"fee": 3}',
        "Thought: it costs 3 €.",
        "Fees\n{3 €}",
        "Action: ask (at the desk)",
        "Use <code>pay(3)</code> in the form.",
        "[]",
        "",
    ],
)
def test_what_only_quotes_or_looks_like_one_is_none(text: str) -> None:
    assert not writes_call(text)

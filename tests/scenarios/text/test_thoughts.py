"""Thoughts are no reply, in whatever form they come; a reply that only quotes the forms loses nothing."""

from __future__ import annotations

import pytest

from hallulab.scenarios.text.thoughts import Spoken, leave_out_thoughts
from tests.recordings_read import read_answers

REPLY = "A lost item is replaced. It costs 3 €."
THOUGHT = "Perhaps the Mayor pays 999 dollars?"
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    "form",
    [
        "<think>{}</think>",
        "<think>\n{}\n</think>\n\n",
        "<THINK>{}</Think>",
        '<think duration="3">{}</think>',
        "<thinking>{}</thinking>\n",
        "<thought>{}</thought>",
        "<reasoning>{}</reasoning>",
        "<reflection>{}</reflection>",
        "<scratchpad>{}</scratchpad>",
        "<seed:think>{}</seed:think>",
        "[THINK]{}[/THINK]",
        "[think]{}[/think]",
        "<|begin_of_thought|>{}<|end_of_thought|>\n<|begin_of_solution|>",
        "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>",
        "◁think▷{}◁/think▷",
        "<|channel>thought\n{}<channel|>",
        "<unused94>thought\n{}<unused95>",
        '<details type="reasoning" done="true">{}</details>\n',
        "Here is my thought process: {} Here is my response: ",
        "<think>{}</think><answer>",
        "<think>{}</think><think>Again: {}</think>",
        "<think>A <think>b</think> {}</think>",
        "<think>First I write <think>. {}</think>",
        "<think>I must not write `</think>` now. {}</think>",
        "<think></think>",
        "<think/>",
        "<think />\n",
        "<think>{}</think>\n\n---\n\n",
        "<think>{}<answer>",
        "<plan>{}</plan>",
        "<reflexion>{}</reflexion>",
        "<seed:cot_budget_reflect>{}</seed:cot_budget_reflect>",
        "<思考プロセス>{}</思考プロセス>",
        "<推論>{}</推論>",
        "<التفكير>{}</التفكير>",
        "<ความคิด>{}</ความคิด>",
        "＜think＞{}＜/think＞",
        "<think>\n\n</think>\n\n",
        "{}\n</think>\n\n",
        "<|channel|>analysis<|message|>{}<|end|>" + FINAL,
        "analysis<|message|>{}<|end|>" + FINAL,
        "<|start|>assistant<|channel|>commentary<|message|>{}<|end|>" + FINAL,
        "<|channel|>analysis<|message|>{}<|end|>",
        "analysis{}assistantfinal",
        "assistantfinal",
        "{}</think>\n\n",
        "{}</think>",
        "</think>",
        "<think>{}</thinking>",
        "<thinking>{}</think>",
        "<think>{}<\\/think>",
        "&lt;think&gt;{}&lt;/think&gt;",
        "<think>{}</think><|begin_of_box|>",
        "<think>{}</think><final>",
        "<analysis>{}</analysis>",
        "<thought_process>{}</thought_process>",
        "<longcat_think>{}</longcat_think>",
        "<思考>{}</思考>",
        "【思考】{}【/思考】",
        "<pensée>{}</pensée>",
        "<рассуждение>{}</рассуждение>",
        "<생각>{}</생각>",
        "<考え>{}</考え>",
        "<myślenie>{}</myślenie>",
        "Here are my reasoning steps:\n{}\n[BEGIN FINAL RESPONSE]\n",
        "<|thought|>{}<|/thought|>",
        "<|think|>{}<|end|><|begin|>assistant<|content|>",
        "<|think_start|>{}<|think_end|>",
        "<|begin_of_reasoning|>{}<|end_of_reasoning|>",
        "<start_of_thought>{}<end_of_thought>",
        "<｜begin▁of▁thought｜>{}<｜end▁of▁thought｜>",
        "<details>\n<summary>Thought for 3 seconds</summary>\n\n> {}\n\n</details>\n\n",
        "```thinking\n{}\n```\n",
        "*Thinking...*\n\n> {}\n>\n> {}\n\n",
        "**Thinking:**\n{}\n\n**Answer:**\n",
        "**Thinking**\n\n{}\n\n**Fee**\n{}\n\n**Final answer**: ",
        "## Thinking process\n{}\n\n## Response\n",
        "**\N{THINKING FACE} Thought process:** {}\n**Answer:** ",
        "### 思考过程\n{}\n### 最终答案：\n",
        "Thought: {}\nFinal Answer: ",
        "Thought: {}\nAction: search\nAction Input: fee\nObservation: 3\nThought: I know.\nFinal Answer: ",
    ],
)
def test_a_thought_before_the_reply_is_left_out(form: str) -> None:
    assert leave_out_thoughts(form.format(THOUGHT, THOUGHT) + REPLY) == Spoken(REPLY, thought=True)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It is 3 €. <think>Perhaps 4? I look again.</think> So 3 €.", "It is 3 €. So 3 €."),
        ("Sure <think>let me see what it costs</think> three euros.", "Sure three euros."),
        (f"{REPLY}\n<think>{THOUGHT}", REPLY),
        (f"{REPLY}<|end_of_solution|>", REPLY),
        (f"<|content|>{REPLY}", REPLY),
        (f"{FINAL}It is 3 €.<|return|>", "It is 3 €."),
        ('<|channel|>final <|constrain|>json<|message|>{"fee": 3}', '{"fee": 3}'),
        (f"<think>{THOUGHT}</think><answer>{REPLY}</answer>", REPLY),
        ("<think />It is 3 €.", "It is 3 €."),
        (f"<|im_start|>think\n{THOUGHT}<|im_end|>\n<|im_start|>answer\n{REPLY}", REPLY),
        ("One.\n</think>\nTwo.\n</think>\nThree.", "Three."),
    ],
)
def test_a_thought_anywhere_is_left_out(text: str, left: str) -> None:
    assert leave_out_thoughts(text).text == left


@pytest.mark.parametrize(
    "form",
    [
        *("<think>{}", "<think>{}</think>", "[THINK]{}", "<thinking>\n{}", "<|begin_of_thought|>{}"),
        *("◁think▷{}", "<|channel|>analysis<|message|>{}", "analysis{}", "<|channel>thought\n{}"),
        "Here's my thought process: {}",
    ],
)
def test_nothing_is_left_of_a_thought_alone_even_without_its_end(form: str) -> None:
    assert leave_out_thoughts(form.format(THOUGHT)) == Spoken("", thought=True)


@pytest.mark.parametrize(
    "text",
    [
        "The fee is 999 €. Write reasoning between <think> and </think>. It costs 20 cents.",
        "Use `<think>` and `</think>`. It costs 3 €.",
        "```\n<think>\nHello there, my dear.\n</think>\n```\nIt costs 3 €.",
        "The tag </think> ends it.",
        "Write the tag </think> to end it",
        "Thought: it costs 3 €.",
        "**Thinking:** it costs 3 €.",
        "**Thinking** about it, 3 €.\n**Answer:** 3 €.",
        "Hello.\n**Thinking:** It costs 3 €.\n**Answer:** 3 €.",
        "**Reasoning:** it says so.\n**Answer:** 3 €.",
        "* Thinking: costs 3 €.\n* Answer: costs nothing.",
        "## Answer\nIt costs 3 €.\n## Thinking\nI looked it up.",
        "<details>\n<summary>Fees</summary>\n3 €.\n</details>\nThat is all.",
        "<think> and </think> are tags. It costs 3 €.",
        "<think> is a tag of R1.",
        "Put it into <think>...</think> tags.",
        "Write <think/> and go on.",
        "The member's level is <plan>gold</plan>.",
        "Put it into <think>your thoughts</think> first.",
        'R1 writes "</think>" before it answers.',
        '{"form": "<think>The model should always think first</think>"}',
        "Dear Sir, I write about <reason>. Thank you.",
        "The analysis is done, and assistant final reviews are due.",
        "analysis of the fee: the assistant final word is 3 €",
        "Analysis: it costs 3 €.",
        "In my thought process: 3 €.",
        "Its template begins with `<|channel|>analysis<|message|>`.",
        "```\n<|channel|>analysis<|message|>\n```\nThat is harmony.",
        "Gemma switches it on with <|think|>.",
        "<reason>Damaged</reason> is the field to fill in. It costs 3 €.",
        "In XML: <order><reason>damaged by water again</reason></order>.",
        "<details><summary>What we think</summary>We think it is fine.</details>\nIt costs 3 €.",
        "  It costs 3 €.\n",
        "",
    ],
)
def test_a_reply_that_quotes_loses_nothing(text: str) -> None:
    assert leave_out_thoughts(text) == Spoken(text, thought=False)


@pytest.mark.parametrize(
    "text",
    [
        '<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"q": 1}<|call|>',
        "<|channel|>analysis<|message|>Hm.<|end|><|channel|>commentary to=functions.search<|message|>{}",
        "analysisI search.assistantcommentary to=functions.search json{}",
    ],
)
def test_a_call_in_a_channel_is_told(text: str) -> None:
    assert leave_out_thoughts(text).called


@pytest.mark.slow  # It reads all recordings.
def test_no_recorded_answer_loses_anything() -> None:
    texts = [answer["choices"][0]["message"].get("content") for answer in read_answers()]
    assert len(texts) > 12_000
    assert [text for text in texts if isinstance(text, str) and leave_out_thoughts(text).text != text] == []

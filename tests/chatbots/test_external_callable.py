from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hallulab.chatbots.evidence import lacks_evidence
from hallulab.chatbots.protocol import ChatbotError, Reply
from hallulab.chatbots.registry import make_chatbot
from hallulab.scenarios.errors import UsageError
from tests.chatbots.stage import LATER, stage

BOT = """
import asyncio
import json
import sys
import time
from collections import UserString
from dataclasses import dataclass
from typing import NamedTuple

NUMBER = 7

def answer(history):
    return "It opens at 7. "

def echo(history):
    return json.dumps(history)

def streams(history):
    yield "It opens at 7."

def labelled(history):
    return "\\n" + "Assistant: It opens at 7.\\nUser: Thanks! "

async def later(history):
    passages = ["The pool opens at 7.", {"text": "Or at 9.", "document": "sunday"}]
    return {"reply": "At 7.", "passages": passages}

def lazily(history):
    return later(history)

def fails(history):
    raise RuntimeError("no water")

def nothing(history):
    return None

def wrong(history):
    return {"answer": "x"}

def misnames(history):
    return {"reply": "x", "contexts": ["y"]}

def misnames_again(history):
    return {"reply": "x", "retrieved_contexts": ["y"]}

def empty(history):
    return "  "

def unseen(history):
    return " \\n\\t\u200b"

def blank_passages(history):
    return {"reply": "x", "passages": ["", {"text": "\\n"}, "A card is free."]}

def loose(history):
    return {"reply": "x", "passages": "one text"}

def odd(history):
    return {"reply": "x", "passages": [3]}

def halved(history):
    return "bad \\ud800"

def halved_passage(history):
    return {"reply": "x", "passages": ["fine", {"text": "x", "document": "\\udfff"}]}

def unknown(history):
    return {"reply": "x", "passages": [{"text": "x", "page": 3}]}

def textless(history):
    return {"reply": "x", "passages": [{"url": "http://x", "title": "X"}]}

def scoreless(history):
    return {"reply": "x", "passages": [{"text": "x", "score": "high"}]}

class Document:
    def __init__(self, **metadata):
        self.page_content, self.metadata, self.id = "Opens at 7.", metadata, None

class Node:
    node_id, metadata = "node-1", {"file_name": "hours.pdf", "page": 3}
    def get_content(self):
        return "Opens at 8."

class NodeWithScore:
    node, score = Node(), 0.5

def of_langchain(history):
    return {"reply": "x", "passages": [Document(source="hours.md", page=3), Document()]}

def of_llamaindex(history):
    return {"reply": "x", "passages": [NodeWithScore(), Node()]}

@dataclass
class Found:
    content: str
    meta: dict
    score: float = 0.5
    embedding: object = None

class Read(NamedTuple):
    text: str
    source: str

class Prediction:
    def __init__(self, **kept):
        self.__dict__["kept"] = kept
    def __getattr__(self, name):
        if name not in self.__dict__["kept"]:
            raise AttributeError(name)
        return self.__dict__["kept"][name]

def of_haystack(history):
    return {"reply": "x", "passages": [Found("Opens at 7.", {"file_path": "hours.md"})]}

def of_own_classes(history):
    return {"reply": "x", "passages": [Read("Opens at 7.", "hours.md")]}

def of_pairs(history):
    return {"reply": "x", "passages": [(Document(source="hours.md"), 0.25)]}

def of_dspy(history):
    return Prediction(reply="At 7.", passages=["Opens at 8."])

class HumanMessage:
    type, content = "human", "When?"

class ToolMessage:
    type, content = "tool", "At 9."

class AIMessageChunk:
    type, content = "AIMessageChunk", "At 7."

def of_a_tool(history):
    return ToolMessage()

def of_a_chunk(history):
    return AIMessageChunk()

class BlockMessage:
    type = "ai"
    def __init__(self, *content):
        self.content = list(content)

def of_blocks(history):
    return BlockMessage({"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "At "}, "7.")

def of_the_user(history):
    return HumanMessage()

def of_two(question, history):
    return "x"

class Asking:
    def __call__(self, history):
        return "x"

def of_services(history):
    given = [
        {"page_content": "a", "metadata": {"source": "a.md"}},
        {"content": "b", "score": 0.25},
        {"text": "c", "url": "http://x/c", "title": "C"},
    ]
    return {"reply": "x", "passages": given}

@dataclass
class Answer:
    reply: str
    passages: list

class Pair(NamedTuple):
    reply: str
    passages: list

class AIMessage:
    content = "At 7."

class Response:
    response, source_nodes = "At 7.", [NodeWithScore()]

def of_a_dataclass(history):
    return Answer("At 7.", ["Opens at 8."])

def of_a_named_tuple(history):
    return Pair("At 7.", ["Opens at 8."])

def of_a_message(history):
    return AIMessage()

def of_a_response(history):
    return Response()

def of_a_user_string(history):
    return UserString("At 7.")

class Slotted:
    __slots__ = ("reply", "passages")

def of_slots(history):
    made = Slotted()
    made.reply, made.passages = "At 7.", ["Opens at 8."]
    return made

@dataclass
class Misnamed:
    reply: str
    sources: list

def misnamed_object(history):
    return Misnamed("x", ["y"])

def leaves(history):
    sys.exit("fed up")

def ends(history):
    raise StopIteration

def withdraws(history):
    raise GeneratorExit

def interrupts(history):
    raise KeyboardInterrupt("mine")

class Unsayable(BaseException):
    def __str__(self):
        raise ValueError

def is_unsayable(history):
    raise Unsayable

async def withdraws_later(history):
    raise GeneratorExit("later")

async def interrupts_later(history):
    raise KeyboardInterrupt

async def cancels_later(history):
    raise asyncio.CancelledError("no")

def gives_up(history):
    raise TimeoutError("my own server is slow")

def sleeps(history):
    time.sleep(60)

async def sleeps_later(history):
    await asyncio.sleep(60)

async def fails_at_the_end(history):
    try:
        await asyncio.sleep(60)
    finally:
        raise RuntimeError("not so fast")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bots")
    (made / "pool_bot.py").write_text(BOT, encoding="utf-8")
    (made / "torn_bot.py").write_text("def answer(:", encoding="utf-8")
    (made / "leaving_bot.py").write_text("import sys; sys.exit(3)", encoding="utf-8")
    return made


@pytest.fixture(autouse=True)
def _working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


async def ask(target: str) -> Reply:
    context, _, _ = stage(options={"target": target})
    return await make_chatbot("callable", context).reply(LATER)


async def test_a_plain_function_gets_the_dialogue_and_its_evidence_is_searched_later() -> None:
    reply = await ask("pool_bot:answer")
    assert (reply.text, reply.passages, reply.calls) == ("It opens at 7.", (), ())
    assert lacks_evidence(reply)
    assert [step.name for step in reply.steps] == ["evidence"]
    dialogue = [{"role": message.role, "content": message.text} for message in LATER]
    assert json.loads((await ask("pool_bot:echo")).text) == dialogue


async def test_what_the_bot_says_is_judged_as_it_says_it() -> None:
    assert (await ask("pool_bot:labelled")).text == "Assistant: It opens at 7.\nUser: Thanks!"


@pytest.mark.parametrize("attribute", ["later", "lazily"])
async def test_an_async_function_may_say_what_it_read(attribute: str) -> None:
    reply = await ask(f"pool_bot:{attribute}")
    assert reply.text == "At 7."
    assert [(p.id, p.document, p.text) for p in reply.passages] == [
        ("passage#0", "passage", "The pool opens at 7."),
        ("passage#1", "sunday", "Or at 9."),
    ]
    assert reply.steps == ()


@pytest.mark.parametrize(
    ("attribute", "passages"),
    [
        ("of_langchain", [("hours.md", "Opens at 7.", None), ("passage", "Opens at 7.", None)]),
        ("of_llamaindex", [("hours.pdf", "Opens at 8.", 0.5), ("hours.pdf", "Opens at 8.", None)]),
        ("of_haystack", [("hours.md", "Opens at 7.", 0.5)]),
        ("of_own_classes", [("hours.md", "Opens at 7.", None)]),
        ("of_pairs", [("hours.md", "Opens at 7.", 0.25)]),
        ("of_services", [("a.md", "a", None), ("passage", "b", 0.25), ("C", "c", None)]),
    ],
)
async def test_documents_of_libraries_and_services_are_passages(
    attribute: str, passages: list[tuple[str, str, float | None]]
) -> None:
    reply = await ask(f"pool_bot:{attribute}")
    assert [(one.document, one.text, one.score) for one in reply.passages] == passages


@pytest.mark.parametrize(
    ("attribute", "passages"),
    [
        *((one, ["Opens at 8."]) for one in ("of_a_dataclass", "of_slots", "of_a_named_tuple")),
        *((one, ["Opens at 8."]) for one in ("of_a_response", "of_dspy")),
        *((one, []) for one in ("of_a_message", "of_a_chunk", "of_a_user_string", "of_blocks")),
    ],
)
async def test_objects_of_classes_and_libraries_are_answers(attribute: str, passages: list[str]) -> None:
    reply = await ask(f"pool_bot:{attribute}")
    assert (reply.text, [one.text for one in reply.passages]) == ("At 7.", passages)


async def test_a_blank_passage_is_none() -> None:
    reply = await ask("pool_bot:blank_passages")
    assert [(one.id, one.text) for one in reply.passages] == [("passage#2", "A card is free.")]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("no_such_bot:answer", "cannot import no_such_bot from .*ModuleNotFoundError"),
        ("torn_bot:answer", "cannot import torn_bot from .*SyntaxError"),
        ("leaving_bot:answer", r"cannot import leaving_bot from .* \(SystemExit: 3\)\.$"),
        ("pool_bot:reply", "the module pool_bot has no attribute 'reply'"),
        ("pool_bot.py:answer", "name the module: `pool_bot:answer`"),
        ("pool_bot.ipynb:answer", "put it into a file: my_bot.py"),
        ("pool_bot:NUMBER", "is a int, which cannot be called"),
        ("pool_bot:Asking", "is a class; name a function, or an object of the class that can be called"),
        ("pool_bot:of_two", r"cannot be called with the dialogue alone \(missing a required .*'history'\)"),
    ],
)
def test_a_target_that_cannot_be_had_is_found_before_the_first_message(target: str, reason: str) -> None:
    context, _, _ = stage(options={"target": target})
    with pytest.raises(UsageError, match=reason) as caught:
        make_chatbot("callable", context)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("pool_bot:fails", "raised RuntimeError: no water"),
        ("pool_bot:nothing", "returned None, not a text"),
        ("pool_bot:streams", "returned <generator object streams at .*>, not a text"),
        ("pool_bot:wrong", r"returned a dict with \['answer'\], not a text"),
        ("pool_bot:misnames", "returned `contexts`, which is not read. Call it `passages`"),
        ("pool_bot:misnames_again", "returned `retrieved_contexts`, which is not read. Call it `passages`"),
        ("pool_bot:misnamed_object", "returned `sources`, which is not read. Call it `passages`"),
        ("pool_bot:of_the_user", "returned <pool_bot.HumanMessage object at .*>, not a text"),
        ("pool_bot:of_a_tool", "returned <pool_bot.ToolMessage object at .*>, not a text"),
        ("pool_bot:empty", "the bot's reply is empty"),
        ("pool_bot:unseen", "the bot's reply is empty"),
        ("pool_bot:loose", "`passages` is a str, not a list"),
        ("pool_bot:odd", "passage 0 is a int, not a text or a dict"),
        (
            "pool_bot:unknown",
            "passage 0 has `page`, which is not read. Leave it out, or put it into `metadata`",
        ),
        ("pool_bot:textless", "passage 0 has no `text`; it has `title`, `url`"),
        ("pool_bot:scoreless", "passage 0 is no passage"),
        ("pool_bot:leaves", "raised SystemExit: fed up"),
        ("pool_bot:ends", "raised StopIteration$"),
        ("pool_bot:withdraws", "raised GeneratorExit$"),
        ("pool_bot:interrupts", "raised KeyboardInterrupt: mine$"),
        ("pool_bot:is_unsayable", "raised Unsayable: its message raised ValueError$"),
        ("pool_bot:withdraws_later", "raised GeneratorExit: later$"),
        ("pool_bot:interrupts_later", "raised KeyboardInterrupt$"),
        ("pool_bot:cancels_later", "raised CancelledError: no$"),
        ("pool_bot:gives_up", "raised TimeoutError: my own server is slow"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(target: str, reason: str) -> None:
    with pytest.raises(ChatbotError, match=reason) as caught:
        await ask(target)
    assert "\n" not in str(caught.value)


async def test_half_characters_of_a_bot_are_replaced_because_no_file_can_hold_them() -> None:
    assert (await ask("pool_bot:halved")).text == "bad \ufffd"
    passages = (await ask("pool_bot:halved_passage")).passages
    assert [passage.document for passage in passages] == ["passage", "\ufffd"]


@pytest.mark.parametrize("target", ["pool_bot:sleeps", "pool_bot:sleeps_later", "pool_bot:fails_at_the_end"])
async def test_a_bot_that_is_cancelled_has_not_failed(target: str) -> None:
    asked = asyncio.create_task(ask(target))
    await asyncio.sleep(0.01)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked


@pytest.mark.parametrize("target", ["pool_bot:sleeps", "pool_bot:sleeps_later"])
async def test_a_bot_that_never_answers_runs_into_the_time_limit(target: str) -> None:
    context, _, _ = stage(options={"target": target})
    context.models.timeout_s = 0.05
    with pytest.raises(ChatbotError, match=rf"{target} gave no reply within 0\.05 s \(--timeout\)"):
        await make_chatbot("callable", context).reply(LATER)

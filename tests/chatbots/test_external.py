from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.chatbots.evidence import EvidenceSource, lacks_evidence
from hallulab.chatbots.external import EndpointBot
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError
from hallulab.chatbots.registry import make_chatbot
from hallulab.scenarios.errors import UsageError
from hallulab.testing.scripted import ScriptedTransport, completion, scripted_pool
from tests.chatbots.stage import ASKED, HOURS, LATER, SCENARIO, Shelf, stage


class TwoServers(httpx2.AsyncBaseTransport):
    """Answers with the port it was asked on."""

    def __init__(self) -> None:
        self.requests: list[tuple[int | None, str | None, dict[str, Any]]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.requests.append((request.url.port, request.headers.get("Authorization"), body))
        return httpx2.Response(200, json=completion(f"I am {request.url.port}.", "scripted"), request=request)


def at(port: int, **more: Any) -> dict[str, Any]:
    return {"base_url": f"http://127.0.0.1:{port}/v1", "model": "scripted", **more}


def context_at(transport: httpx2.AsyncBaseTransport, **options: Any) -> ChatbotContext:
    pool = ModelPool({"default": Endpoint("m", "http://127.0.0.1:9/v1")}, transport=transport)
    return ChatbotContext(models=pool, knowledge=Shelf(), scenario=SCENARIO, options=options)


async def test_the_bot_gets_the_whole_dialogue_and_its_evidence_is_searched_later() -> None:
    context, transport, shelf = stage(options=at(8001, system="Be brief."))
    reply = await make_chatbot("endpoint", context).reply(LATER)
    assert reply.text == "It opens at 7. A ticket is 6 euros."
    sent = transport.requests[0]
    assert sent["model"] == "scripted"
    assert [(m["role"], m["content"]) for m in sent["messages"]] == [
        ("system", "Be brief."),
        *((message.role, message.text) for message in LATER),
    ]
    assert (shelf.searched, reply.passages, lacks_evidence(reply)) == ([], (), True)
    found = await EvidenceSource(shelf, 4).complete(reply)
    assert shelf.searched == [("I want to swim.\nThe indoor one. When does it open?", 4)]
    assert (found.passages, lacks_evidence(found)) == ((HOURS,), False)
    assert [step.name for step in found.steps] == ["evidence"]
    assert "retrieved from the scenario's knowledge base" in found.steps[0].text
    assert [call.purpose for call in reply.calls] == ["chatbot.reply"]


async def test_two_servers_never_answer_for_each_other() -> None:
    servers = TwoServers()
    context = context_at(servers)
    texts = [
        (await make_chatbot("endpoint", replace(context, options=at(port))).reply(LATER)).text
        for port in (8001, 8002, 8001)
    ]
    await context.models.close()
    assert texts == ["I am 8001.", "I am 8002.", "I am 8001."]
    assert len(servers.requests) == 2


async def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_KEY", "sesame")
    servers = TwoServers()
    context = context_at(servers, **at(8001, api_key_env="THEIR_KEY"))
    await make_chatbot("endpoint", context).reply(LATER)
    await context.models.close()
    assert servers.requests[0][1] == "Bearer sesame"


def test_a_missing_key_is_found_before_the_first_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEIR_KEY", raising=False)
    context, _, _ = stage(options=at(8001, api_key_env="THEIR_KEY"))
    with pytest.raises(UsageError, match="needs an API key: set the environment variable THEIR_KEY"):
        make_chatbot("endpoint", context)


def test_a_replay_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEIR_KEY", raising=False)
    recording = Recording()
    recording.replaying = True
    pool, _ = scripted_pool(lambda _: "", recording=recording)
    options = at(8001, api_key_env="THEIR_KEY")
    context = ChatbotContext(models=pool, knowledge=Shelf(), scenario=SCENARIO, options=options)
    assert isinstance(make_chatbot("endpoint", context), EndpointBot)


async def test_without_an_address_the_model_is_one_of_the_experiment() -> None:
    context, transport, _ = stage()
    reply = await make_chatbot("endpoint", context).reply(LATER)
    assert reply.calls[0].model == transport.requests[0]["model"] == "scripted"
    context, _, _ = stage(options={"model": "nobody"})
    with pytest.raises(UsageError, match="no model named 'nobody' under `models`; there are: default"):
        make_chatbot("endpoint", context)


async def test_what_the_bot_says_is_judged_as_it_says_it() -> None:
    said = "Assistant: It opens at 7.\nUser: Thanks!"
    context, _, _ = stage({"generate": f"\n{said} "}, options=at(8001))
    assert (await make_chatbot("endpoint", context).reply(LATER)).text == said


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx2.Response(404, json={"error": {"message": "no such bot"}}), "status 404"),
        (" ", "the bot's reply is empty"),
    ],
)
async def test_a_bot_that_fails_ends_the_reply(answer: Any, reason: str) -> None:
    context, transport, _ = stage({"generate": answer}, options=at(8001))
    assert isinstance(transport, ScriptedTransport)
    with pytest.raises(ChatbotError, match=reason) as caught:
        await make_chatbot("endpoint", context).reply(LATER)
    assert len(caught.value.calls) == 1


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.5, "max_tokens": 30}])
async def test_the_bot_is_sent_the_sampling_that_was_asked_for_and_no_other(sampling: dict[str, Any]) -> None:
    context, transport, _ = stage(options=at(8001, **sampling))
    await make_chatbot("endpoint", context).reply(LATER)
    [sent] = transport.requests
    assert {name: sent[name] for name in ("temperature", "max_tokens") if name in sent} == sampling


def citing(message: dict[str, Any] | None = None, **top: Any) -> ChatbotContext:
    """A bot whose completion holds more than a text."""
    made = completion("It opens at 7.", "scripted") | top
    made["choices"][0]["message"] |= message or {}
    return stage({"generate": httpx2.Response(200, json=made)}, options=at(8001))[0]


AZURE = {
    "content": "Opens at 7.",
    "title": "Hours",
    "url": "https://x/hours",
    "chunk_id": "0",
    "filepath": None,
}
OWN_WORDS = {"start": 0, "end": 14, "text": "It opens at 7."}
COHERE = {**OWN_WORDS, "sources": [{"id": "d1", "document": {"title": "Hours", "snippet": "At 7."}}]}
FILE_CITATION = {
    "type": "file_citation",
    "text": "【4:0†source】",
    "start_index": 3,
    "file_citation": {"file_id": "f1", "quote": "At 7."},
}
OPEN_WEBUI = {
    "source": {"name": "hours"},
    "document": ["At 7.", "3 euros."],
    "metadata": [{"source": "hours.md"}, {"source": "fees.md"}],
}
RAGFLOW = {"content": "At 7.", "document_name": "hours.md", "similarity": 0.8}
URL_CITATION = {"type": "url_citation", "url_citation": {"url": "https://x", "content": "At 7."}}


@pytest.mark.parametrize(
    ("context", "passages"),
    [
        (citing({"context": {"citations": [AZURE], "intent": "[]"}}), [("Hours", "Opens at 7.")]),
        (
            citing(search_results=[{"title": "T", "url": "https://x", "snippet": "At 7.", "date": None}]),
            [("T", "At 7.")],
        ),
        (citing(citations=["https://x", {"text": "At 7.", "url": "https://y"}]), [("https://y", "At 7.")]),
        (citing({"annotations": [URL_CITATION]}), [("https://x", "At 7.")]),
        (citing({"citations": [COHERE]}), [("Hours", "At 7.")]),
        (citing({"annotations": [FILE_CITATION]}), [("passage", "At 7.")]),
        (citing(citations=[{"cited_text": "At 7.", "start_char_index": 0}]), [("passage", "At 7.")]),
        (citing({"context": [{"text": "At 7.", "title": "Hours"}]}), [("Hours", "At 7.")]),
        (citing(citations=[{"content": "At 7."}, {"content": "At 7."}]), [("passage", "At 7.")]),
        (citing(sources=[OPEN_WEBUI]), [("hours.md", "At 7."), ("fees.md", "3 euros.")]),
        (citing({"reference": {"chunks": [RAGFLOW]}}), [("hours.md", "At 7.")]),
        (citing({"context": ["It opens at 7."]}), [("passage", "It opens at 7.")]),
        (citing(citations=[{"retrievedContext": RAGFLOW}]), [("hours.md", "At 7.")]),
    ],
    ids=[
        *("azure", "search results", "citations", "annotations", "cohere", "file", "anthropic", "context"),
        *("twice", "open webui", "ragflow", "texts", "inner"),
    ],
)
async def test_texts_that_a_completion_cites_are_passages(
    context: ChatbotContext, passages: list[tuple[str, str]]
) -> None:
    reply = await make_chatbot("endpoint", context).reply(LATER)
    assert [(one.document, one.text) for one in reply.passages] == passages
    assert (reply.text, lacks_evidence(reply)) == ("It opens at 7.", False)


@pytest.mark.parametrize(
    "cited", [{"citations": ["https://x"]}, {"search_results": [{"url": "https://x", "snippet": " "}]}]
)
async def test_addresses_alone_are_no_passages_and_this_is_said(cited: dict[str, Any]) -> None:
    reply = await make_chatbot("endpoint", citing(**cited)).reply(LATER)
    assert (reply.passages, lacks_evidence(reply)) == ((), True)
    assert [step.text for step in reply.steps if step.name == "cited"] == [
        "Addresses without their texts are no passages: https://x"
    ]


@pytest.mark.parametrize(
    "cited", ["x", {"citations": "x"}, [3, None], [{"url": 3}], {"citations": [[]]}, [OWN_WORDS]]
)
async def test_what_is_cited_in_another_form_is_left_alone(cited: Any) -> None:
    reply = await make_chatbot("endpoint", citing({"context": cited}, citations=cited)).reply(LATER)
    assert (reply.passages, [step.name for step in reply.steps]) == ((), ["evidence"])


class Router(httpx2.AsyncBaseTransport):
    """Answers by another model each time."""

    def __init__(self) -> None:
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        self.asked += 1
        return httpx2.Response(200, json=completion(f"Answer {self.asked}.", f"model-{self.asked}"))


async def test_several_models_may_answer_for_a_bot_under_test() -> None:
    context = context_at(Router(), **at(8001))
    bot = make_chatbot("endpoint", context)
    assert [(await bot.reply(said)).text for said in (ASKED, LATER)] == ["Answer 1.", "Answer 2."]
    await context.models.close()


async def test_one_model_answers_for_everybody_else() -> None:
    context = context_at(Router())
    bot = make_chatbot("endpoint", context)
    await bot.reply(ASKED)
    with pytest.raises(ChatbotError, match="it is from the model 'model-2', earlier ones from 'model-1'"):
        await bot.reply(LATER)
    await context.models.close()

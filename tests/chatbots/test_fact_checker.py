from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.served_model import ClaimCheck, read_claim_check
from hallulab.chatbots.fact_checker import FactCheckerBot
from hallulab.chatbots.pipeline import format_evidence, turn_seed
from hallulab.chatbots.protocol import ChatbotError, Reply
from hallulab.chatbots.registry import make_chatbot
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.transcript import Message, Passage
from hallulab.testing.scripted import completion
from tests.chatbots.stage import ASKED, HOURS, LATER, SCENARIO, stage, step_of

FIVE = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
SEEDS = [67717899, 197211538, 231996997]
TUNED = "qwen2.5-coder-1.5b"
DRAFT = "It opens at 7. A ticket is 6 euros."
EVIDENCE = "[1] Opening hours\nThe pool opens at 7."


async def reply_of(
    kind: str, changes: Any = None, history: Any = LATER, **more: Any
) -> tuple[Reply, Any, Any]:
    context, transport, shelf = stage(changes, **more)
    return await make_chatbot(kind, context).reply(history), transport, shelf


def purposes(reply: Reply) -> list[str]:
    return [call.purpose.removeprefix("chatbot.") for call in reply.calls]


@pytest.mark.parametrize(
    ("kind", "calls", "steps", "text"),
    [
        ("vanilla", ["reformulate", "generate"], ["reformulated_query", "draft"], DRAFT),
        ("prompt-engineered", ["reformulate", "generate"], ["reformulated_query", "draft"], DRAFT),
        (
            "editor",
            ["reformulate", "generate", "edit"],
            ["reformulated_query", "draft", "problems", "final"],
            "It opens at 7.",
        ),
        (
            "fact-checker",
            ["reformulate", "generate", "split", "verify", "verify", "process"],
            ["reformulated_query", "draft", "claims", "verdicts", "final"],
            "It opens at 7.",
        ),
        ("agent", ["reformulate", "route", "answer"], ["reformulated_query", "route", "draft"], DRAFT),
    ],
)
async def test_a_reply_takes_these_calls_and_leaves_these_steps(
    kind: str, calls: list[str], steps: list[str], text: str
) -> None:
    reply, transport, _ = await reply_of(kind)
    assert purposes(reply) == calls
    assert len(transport.requests) == len(calls)
    assert [step.name for step in reply.steps] == steps
    assert reply.text == text
    assert reply.query == "When does the indoor pool open?"
    assert reply.passages == (HOURS,)


@pytest.mark.parametrize("history", [ASKED, LATER])
async def test_all_variants_ask_for_the_same_reformulation(history: tuple[Message, ...]) -> None:
    requests = []
    for kind in FIVE:
        options = {"temperature": 0.5, "max_tokens": 99} if kind == "agent" else {}
        _, transport, _ = await reply_of(kind, history=history, options=options)
        requests.append(transport.requests[0])
    assert step_of(requests[0]) == "reformulate"
    assert all(request == requests[0] for request in requests)


@pytest.mark.parametrize(("kind", "step"), [(k, "generate") for k in FIVE] + [("editor", "edit")])
async def test_evidence_comes_first_in_the_prompt_with_its_documents_title(kind: str, step: str) -> None:
    _, transport, _ = await reply_of(kind)
    system = next(r for r in transport.requests if step_of(r) == step)["messages"][0]["content"]
    assert system.startswith(
        "You are an assistant on the city's swimming pools. Your task is to help people who want to swim."
        f"\n\nDocuments found for the user's last message:\n\n{EVIDENCE}\n\n(End of the documents.)\n\n"
    )


async def test_a_draft_is_generated_on_the_dialogue_as_it_was() -> None:
    _, transport, shelf = await reply_of("vanilla")
    messages = transport.requests[1]["messages"]
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
    assert messages[-1]["content"] == LATER[-1].text
    assert "- Tell opening hours\n- Explain tickets" in messages[0]["content"]
    assert shelf.searched == [("When does the indoor pool open?", 4)]


async def test_a_claim_is_verified_by_evidence_of_its_own_and_the_users_words() -> None:
    _, transport, shelf = await reply_of("fact-checker")
    assert shelf.searched[1:] == [("The pool opens at 7.", 2), ("A ticket is 6 euros.", 2)]
    asked = [r for r in transport.requests if step_of(r) == "verify"]
    assert asked[0]["max_tokens"] == 1
    last = asked[0]["messages"][-1]["content"]
    assert last.startswith(
        f"Document: {EVIDENCE}\n\n[2] The user's own words\nI want to swim.\nThe indoor one. When does"
    )


async def test_only_unsupported_claims_are_corrected() -> None:
    reply, transport, _ = await reply_of("fact-checker")
    process = next(r for r in transport.requests if step_of(r) == "process")["messages"][-1]["content"]
    assert process.endswith("Unsupported statements:\n- A ticket is 6 euros.\n\nCorrected reply:")
    assert reply.steps[3].text == (
        "supported (P = 0.90): The pool opens at 7.\nunsupported (P = 0.20): A ticket is 6 euros."
    )


@pytest.mark.parametrize(
    ("changes", "last_call", "told", "text"),
    [
        ({"verify": {"Yes": 0.9, "No": 0.1}}, "verify", "every claim that was checked is supported.", DRAFT),
        (
            {"split": json.dumps({"claims": [], "other": ["Hello!"]}), "generate": "Hello!"},
            "split",
            "it makes no factual claim.",
            "Hello!",
        ),
    ],
)
async def test_a_draft_without_unsupported_claims_stands(
    changes: dict[str, Any], last_call: str, told: str, text: str
) -> None:
    reply, _, _ = await reply_of("fact-checker", changes)
    assert purposes(reply)[-1] == last_call
    assert (reply.steps[-1].text, reply.text) == (f"The draft stands: {told}", text)


async def test_claims_can_be_verified_by_another_model() -> None:
    stern = httpx2.Response(200, json=completion({"Yes": 0.9, "No": 0.1}, "stern"))
    context, _, _ = stage({"verify": stern}, options={"verifier": "judge"})
    context.models._clients["judge"] = context.models.at(Endpoint("stern", "http://127.0.0.1:9/v1"))
    reply = await make_chatbot("fact-checker", context).reply(LATER)
    assert {call.purpose for call in reply.calls if call.model == "stern"} == {"chatbot.verify"}


def test_fact_checker_tells_by_which_model_and_question_it_verifies() -> None:
    context, _, _ = stage()
    question = load_prompt("hallulab.chatbots", "verify")
    assert FactCheckerBot(context).claim_check == ClaimCheck.by(["scripted"], [question])


def test_the_model_that_is_named_as_verifier_is_the_one_told() -> None:
    context, _, _ = stage(options={"verifier": "judge"})
    context.models._clients["judge"] = context.models.at(Endpoint("stern", "http://127.0.0.1:9/v1"))
    assert FactCheckerBot(context).claim_check.models == ("stern",)


@pytest.mark.parametrize("kind", ["vanilla", "prompt-engineered", "editor", "agent"])
def test_the_other_chatbots_verify_by_no_model(kind: str) -> None:
    context, _, _ = stage()
    assert read_claim_check(kind, make_chatbot(kind, context)) == ClaimCheck()


def test_an_unknown_verifier_is_refused_before_the_conversation() -> None:
    context, _, _ = stage(options={"verifier": "nobody"})
    with pytest.raises(UsageError, match="no model named 'nobody'"):
        make_chatbot("fact-checker", context)


@pytest.mark.parametrize(
    ("letter", "name", "rule"), [("A", "attendant", "do not guess"), ("B", "drafter", "ready to be used")]
)
async def test_the_specialist_routed_to_answers(letter: str, name: str, rule: str) -> None:
    reply, transport, _ = await reply_of("agent", {"route": {letter: 1.0}})
    assert reply.steps[1].text == name
    assert rule in transport.requests[-1]["messages"][0]["content"]


async def test_a_team_of_one_needs_no_route() -> None:
    alone = SCENARIO.model_copy(update={"specialists": SCENARIO.specialists[:1]})
    reply, _, _ = await reply_of("agent", scenario=alone)
    assert purposes(reply) == ["reformulate", "answer"]


@pytest.mark.parametrize("kind", FIVE)
async def test_a_models_failure_ends_the_reply_and_keeps_its_calls(kind: str) -> None:
    context, _, _ = stage({"generate": httpx2.Response(400, json={"error": {"message": "too long"}})})
    with pytest.raises(ChatbotError, match="status 400") as caught:
        await make_chatbot(kind, context).reply(LATER)
    assert caught.value.calls[-1].error is not None
    assert len(caught.value.calls) == (3 if kind == "agent" else 2)


async def test_a_failed_verification_fails_the_reply_and_keeps_all_calls() -> None:
    context, _, _ = stage({"verify": {"Perhaps": 1.0}})
    with pytest.raises(ChatbotError, match="none of Yes, No") as caught:
        await make_chatbot("fact-checker", context).reply(LATER)
    assert [call.purpose for call in caught.value.calls][-2:] == ["chatbot.verify"] * 2


@pytest.mark.parametrize(
    ("kind", "step"),
    [("vanilla", "reformulate"), ("vanilla", "generate"), ("fact-checker", "process"), ("agent", "generate")],
)
async def test_an_empty_text_is_no_reply(kind: str, step: str) -> None:
    context, _, _ = stage({step: "Assistant:\n"})
    with pytest.raises(ChatbotError):
        await make_chatbot(kind, context).reply(LATER)


async def test_a_knowledge_base_that_fails_ends_the_reply() -> None:
    context, _, shelf = stage()

    async def broken(query: str, k: int) -> tuple[Passage, ...]:
        raise OperationalError("the index is gone.")

    shelf.search = broken  # type: ignore[method-assign]
    with pytest.raises(ChatbotError, match="the index is gone") as caught:
        await make_chatbot("vanilla", context).reply(LATER)
    assert len(caught.value.calls) == 1


async def test_options_reach_the_request() -> None:
    _, transport, _ = await reply_of("vanilla", options={"temperature": 0.7, "max_tokens": 50})
    assert (transport.requests[1]["temperature"], transport.requests[1]["max_tokens"]) == (0.7, 50)


def test_seeds_differ_by_turn_and_by_seed_and_are_fixed() -> None:
    assert [turn_seed(0, ASKED), turn_seed(0, LATER), turn_seed(1, ASKED)] == SEEDS
    assert turn_seed(0, (Message(role="user", text="other"),)) == SEEDS[0]


def test_evidence_is_numbered_under_titles_once() -> None:
    unknown = Passage(id="x#0", document="x", text="Body.")
    assert format_evidence((HOURS, unknown), {"hours": "Opening hours"}) == f"{EVIDENCE}\n\n[2] x\nBody."
    assert format_evidence((), {}) == "(no document was found)"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ('{"problems": ["A', "The edit cannot be read, the draft stands. edit: the model's answer"),
        ('{"problems": ["All of it."], "reply": " "}', "The edit leaves nothing, the draft stands."),
    ],
)
async def test_an_edit_that_cannot_be_used_leaves_the_draft_and_says_so(edit: str, told: str) -> None:
    reply, _, _ = await reply_of("editor", {"edit": edit})
    assert reply.text == DRAFT
    assert reply.steps[-1].text.startswith(told)


async def test_a_split_that_cannot_be_read_has_each_sentence_checked() -> None:
    reply, _, shelf = await reply_of("fact-checker", {"split": '{"claims": ["A'})
    assert [query for query, _ in shelf.searched[1:]] == ["It opens at 7.", "A ticket is 6 euros."]
    assert reply.steps[2].text.startswith("The split cannot be read, so each sentence is checked.")
    assert [step.name for step in reply.steps[2:]] == ["split", "claims", "verdicts", "final"]


async def test_sentences_that_are_not_checked_are_counted_and_not_called_supported() -> None:
    changes = {
        "split": '{"claims": ["A',
        "generate": " ".join(f"It opens at {hour}." for hour in range(1, 13)),
        "verify": {"Yes": 0.9, "No": 0.1},
    }
    reply, _, _ = await reply_of("fact-checker", changes)
    assert purposes(reply).count("verify") == 10
    assert reply.steps[2].text.endswith("2 sentences after the first 10 are not checked.")
    assert reply.steps[-1].text == "The draft stands: every claim that was checked is supported."


async def test_an_abbreviation_ends_no_sentence_that_is_checked() -> None:
    changes = {"split": '{"claims": ["A', "generate": "A ticket is Rs. 450 at most.\n- It opens at 7."}
    _, _, shelf = await reply_of("fact-checker", changes)
    assert [query for query, _ in shelf.searched[1:]] == ["A ticket is Rs. 450 at most.", "- It opens at 7."]


@pytest.mark.parametrize(
    ("served", "share", "stands"),
    [(TUNED, 0.7, True), (TUNED, 0.69, False), ("scripted", 0.5, True), ("scripted", 0.49, False)],
)
async def test_a_claim_is_supported_from_the_threshold_tuned_for_its_model(
    served: str, share: float, stands: bool
) -> None:
    context, _, _ = stage({"verify": {"Yes": share, "No": 1 - share}}, served=served)
    reply = await make_chatbot("fact-checker", context).reply(LATER)
    assert (reply.text == DRAFT) == stands


@pytest.mark.parametrize("kind", FIVE)
async def test_a_courtesy_is_answered_in_one_call_without_a_search(kind: str) -> None:
    thanks = (*LATER, Message(role="assistant", text="At 7."), Message(role="user", text="Thank you!"))
    reply, transport, shelf = await reply_of(kind, history=thanks)
    assert purposes(reply) == ["courtesy"]
    assert (reply.query, reply.passages, shelf.searched) == ("", (), [])
    assert [step.name for step in reply.steps] == ["courtesy", "draft"]
    assert "only a courtesy" in transport.requests[0]["messages"][0]["content"]


async def test_thanks_with_a_question_are_no_courtesy() -> None:
    asked = (Message(role="user", text="Thank you! When does it open?"),)
    reply, _, shelf = await reply_of("vanilla", history=asked)
    assert purposes(reply) == ["reformulate", "generate"]
    assert len(shelf.searched) == 1

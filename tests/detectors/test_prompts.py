"""What models are asked, to the letter, where prompts were mended."""

from __future__ import annotations

import json
from typing import Any

from hallulab.detectors.base.protocol import DetectorContext, run_detector
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, last_user, scripted_pool

FEE = Passage(id="fee#0", document="fee", text="A card is 5 euros. It is valid for a year.")


async def ask(detector: str, script: Script, reply: str, question: str = "", **options: Any) -> list[str]:
    """Return the last message of each request about a reply."""
    pool, transport = scripted_pool(script)
    made = make_detector(detector, detector, DetectorContext(models=pool, options=options))
    await run_detector(made, [TurnView(question=question, passages=(FEE,), reply=reply)])
    return [last_user(request) for request in transport.requests]


def answer_lists(body: dict[str, Any]) -> str:
    """Objects to all sentences, and gives them the grade 5."""
    quotes = [line for line in REPLY.split("\n") if line]
    texts = [{"reason": "Not there.", "sentence": quote} for quote in quotes]
    grades = [{"number": n, "explanation": "so", "severity": 5} for n in (1, 2)]
    return {
        "RoughAnalysis": json.dumps({"hallucinations": texts}),
        "FineAnalysis": json.dumps({"grades": grades}),
        "Result": '{"hallucinations": []}',
    }[body["response_format"]["json_schema"]["name"]]


REPLY = "1. A card is 9 euros.\n2. Call 555-0134 for it."


async def test_a_summary_has_no_empty_question_and_no_empty_words_of_the_user() -> None:
    asked, *_ = await ask("halludetect", answer_lists, REPLY, reading="word", samples=1)
    assert asked == (
        "Evidence:\nDocument 1: A card is 5 euros. It is valid for a year.\n\n"
        "Reply:\n1. A card is 9 euros.\n2. Call 555-0134 for it.\n\n"
        "List what may be made up, as JSON."
    )


async def test_an_answer_has_its_question_and_the_words_of_the_user() -> None:
    asked, *_ = await ask("halludetect", answer_lists, REPLY, "The fee?", reading="word", samples=1)
    assert asked == (
        "Evidence:\nDocument 1: A card is 5 euros. It is valid for a year.\nWords of the user: The fee?\n\n"
        "Question:\nThe fee?\n\nReply:\n1. A card is 9 euros.\n2. Call 555-0134 for it.\n\n"
        "List what may be made up, as JSON."
    )


async def test_objections_to_items_of_a_list_have_one_number() -> None:
    _, graded, reported = await ask("halludetect", answer_lists, REPLY, reading="word", samples=1)
    numbered = (
        "1. A card is 9 euros. (objection: Not there.)\n2. Call 555-0134 for it. (objection: Not there.)"
    )
    evidence = "Evidence:\nDocument 1: A card is 5 euros. It is valid for a year.\n\n"
    assert graded == f"{evidence}Possible errors:\n{numbered}\n\nGrade them, as JSON."
    assert reported == f"{evidence}Errors:\n{numbered}\n\nWrite the report, as JSON."


async def test_the_scale_has_one_grade_for_a_harmless_contradiction_and_a_place_for_small_talk() -> None:
    pool, transport = scripted_pool(answer_lists)
    context = DetectorContext(models=pool, options={"reading": "word", "samples": 1})
    made = make_detector("halludetect", "halludetect", context)
    await run_detector(made, [TurnView(question="", passages=(FEE,), reply=REPLY)])
    assert transport.requests[1]["messages"][0]["content"] == (
        "You grade possible errors in an assistant's reply by how much they matter. First explain in one "
        "sentence, then give a severity:\n"
        "1: harmless, such as a polite offer, a question, a greeting, or it is supported after all\n"
        "2: common sense, plain advice, or small talk about the speaker (a taste, a memory, a feeling) that "
        "needs no source\n"
        "3: imprecise, or not quite what the evidence says, but the user would not act wrongly because of "
        "it\n"
        "4: a claim about a body, place, law, right, procedure or fact that would mislead the user if wrong\n"
        "5: a concrete detail such as a phone number, amount, date or deadline, or a claim that the evidence "
        "contradicts, if it would harm the user\n"
        "Where two grades fit, the consequence for the user decides. Grade every possible error, by its "
        "number."
    )


def answer_facts(body: dict[str, Any]) -> str:
    """States one fact and two variants of each kind; the evidence says all of them."""
    asked = last_user(body)
    if "response_format" in body:
        return json.dumps({"same": ["A.", "B."], "opposite": ["C.", "D."]})
    return "YES" if "Statement:" in asked else "1: The fee is 9 euros."


async def test_sentences_of_a_list_are_taken_apart_with_one_number() -> None:
    asked, *_ = await ask("metarag", answer_facts, REPLY, "The fee?", reading="word")
    assert asked == "Question: The fee?\nAnswer:\n1. A card is 9 euros.\n2. Call 555-0134 for it."


async def test_a_summary_is_taken_apart_without_a_question() -> None:
    asked, rewording, *_ = await ask("metarag", answer_facts, REPLY, reading="word")
    assert asked == "Answer:\n1. A card is 9 euros.\n2. Call 555-0134 for it."
    assert rewording == "Fact: The fee is 9 euros."


async def test_a_capable_model_rewords_a_fact_beside_its_question_and_checks_it_alone() -> None:
    _, rewording, check, *_ = await ask("metarag", answer_facts, REPLY, "Which fee?", reading="word")
    assert rewording == ("The question, only to understand the fact: Which fee?\nFact: The fee is 9 euros.")
    assert check == ("Evidence:\nDocument 1: A card is 5 euros. It is valid for a year.\n\nStatement: A.")


async def test_a_small_model_rewords_a_fact_alone() -> None:
    def answer(body: dict[str, Any]) -> str | dict[str, float]:
        found = answer_facts(body)
        return {"YES": 0.9, "NO": 0.1} if found == "YES" else found

    _, rewording, *_ = await ask("metarag", answer, REPLY, "Which fee?", reading="probability")
    assert rewording == "Fact: The fee is 9 euros."


async def test_an_opposite_cannot_be_true_with_the_fact() -> None:
    pool, transport = scripted_pool(answer_facts)
    made = make_detector("metarag", "metarag", DetectorContext(models=pool, options={"reading": "word"}))
    await run_detector(made, [TurnView(question="", passages=(FEE,), reply=REPLY)])
    system, *shown = [message["content"] for message in transport.requests[1]["messages"]]
    assert system == (
        'You reword one fact. "same": 2 rewordings that mean exactly the same, with synonyms for the key '
        'words; keep all names and numbers. "opposite": 2 rewordings that say the opposite, with antonyms or '
        'a negation: they cannot be true if the fact is, so write "must not" or "are not allowed to" instead '
        'of "may not". Every rewording is a full sentence about the fact.'
    )
    assert [json.loads(text)["opposite"] for text in shown if text.startswith("{")] == [
        ["The bakery does not open at 6 am.", "The bakery closes at 6 am."],
        ["Members must not borrow five books for two weeks.", "Members are forbidden to borrow five books."],
        [
            "The office handles only claims that exceed 900 euros.",
            "The office does not handle claims of up to 900 euros.",
        ],
    ]


async def test_all_facts_at_once_stand_beside_their_question() -> None:
    _, asked, *_ = await ask("metarag", answer_facts, REPLY, "Which fee?", together=True)
    assert asked == (
        "Evidence:\nDocument 1: A card is 5 euros. It is valid for a year.\n\n"
        "The question, only to understand the fact: Which fee?\n\n"
        "Facts:\n1. The fee is 9 euros.\n\nReword and judge every fact, as JSON."
    )

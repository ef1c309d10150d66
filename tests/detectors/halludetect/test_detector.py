"""HalluDetect's pipeline on a scripted model, in the readings that follow the paper's steps."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from hallulab.detectors.base.protocol import DetectorContext, describe_method
from hallulab.detectors.halludetect.detector import HalluDetectDetector
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.transcript import Judgement, Message, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import Script, last_user, scripted_pool

REPLY = "The pool opens at 6. Call 555-0134 for tickets. Feel free to ask more."
OWN = Passage(id="pool#0", document="pool", text="The pool opens at 6 in the morning.")
VIEW = TurnView(question="When does the pool open?", passages=(OWN,), reply=REPLY)
HISTORY = (Message(role="user", text="I swim on Monday."), Message(role="assistant", text="Good."))


class Shelf:
    """A knowledge base that remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        self.asked.append((query, k))
        return (OWN, Passage(id="pool#1", document="pool", text="Tickets are sold at the gate."))


def probabilities(body: dict[str, Any]) -> str | dict[str, float]:
    """Only what speaks of opening is supported; everything is a fact; reasons and queries are texts."""
    asked = last_user(body)
    if "Fact or Talk" in asked:
        return {"Fact": 0.9, "Talk": 0.1}
    if "Answer Yes or No" in asked:
        statement = asked.split("Statement:\n")[1]
        return {"Yes": 0.9, "No": 0.1} if "opens" in statement.split("\n")[0] else {"Yes": 0.1, "No": 0.9}
    if "Notes:" in asked:
        return "The user swims on Monday."
    return "The evidence has no phone number." if "What is wrong?" in asked else "When does the pool open?"


def detector(script: Script, **options: Any) -> tuple[HalluDetectDetector, list[dict[str, Any]]]:
    pool, transport = scripted_pool(script)
    options = {"reading": "probability", **options}
    return HalluDetectDetector(
        "halludetect", DetectorContext(models=pool, options=options)
    ), transport.requests


async def judged(script: Script, view: TurnView = VIEW, **options: Any) -> Judgement:
    return await detector(script, **options)[0].detect(view)


async def test_an_unsupported_claim_is_flagged_and_the_polite_offer_is_not() -> None:
    judgement = await judged(probabilities, overlap=False)
    assert (judgement.outcome, judgement.flagged) == ("scored", True)
    assert judgement.spans is not None
    [span] = judgement.spans
    assert (span.text, span.start, span.end) == ("Call 555-0134 for tickets.", 21, 47)
    assert (span.severity, span.reason) == (judgement.score, "The evidence has no phone number.")
    assert span.severity == pytest.approx(4.8)
    assert [unit.score for unit in judgement.units] == [pytest.approx(1.6), pytest.approx(4.8), 1.0]
    assert judgement.units[2].details == {"rule": "claims nothing"}


async def test_overlap_counts_as_much_as_the_questions() -> None:
    judgement = await judged(probabilities)
    details = judgement.units[1].details
    assert details["lack of overlap"] == pytest.approx(1.0)
    assert details["P(unsupported)"] == pytest.approx((0.9 + 1.0) / 2)


async def test_samples_are_differently_worded_questions_with_one_shared_beginning() -> None:
    judge, requests = detector(probabilities, samples=3, reasons=False)
    judgement = await judge.detect(VIEW)
    assert len(judgement.calls) == len(requests) == 2 * (3 + 1)
    asked = [last_user(body) for body in requests if "Evidence:" in last_user(body)]
    assert len({text.rsplit("\n", 1)[1] for text in asked}) == 3
    assert len({text.split("Statement:")[0] for text in asked}) == 1


async def test_a_repeated_sentence_is_asked_about_once_and_rated_at_each_occurrence() -> None:
    judge, requests = detector(probabilities)
    again = " ".join(["Call 555-0134 for tickets."] * 20)
    judgement = await judge.detect(VIEW.model_copy(update={"reply": again}))
    assert len(requests) == 3 + 1 + 1
    assert [(span.start, span.severity) for span in judgement.spans or ()] == [
        (27 * number, judgement.score) for number in range(20)
    ]


async def test_the_first_turn_without_a_knowledge_base_has_no_steps_before_the_analysis() -> None:
    judgement = await judged(probabilities)
    assert {call.purpose.split(".")[1] for call in judgement.calls} == {
        "supported",
        "proven",
        "agreed",
        "consequence",
        "reason",
    }


async def test_retrieval_is_doubled_with_the_reformulated_query_and_the_history_summed_up() -> None:
    shelf = Shelf()
    judge, requests = detector(probabilities)
    judgement = await judge.detect(VIEW.model_copy(update={"knowledge": shelf, "history": HISTORY}))
    assert shelf.asked == [("When does the pool open?", 2)]
    assert [(unit.text, unit.details) for unit in judgement.units[:2]] == [
        ("When does the pool open?", {"step": "reformulated query"}),
        ("The user swims on Monday.", {"step": "memory"}),
    ]
    questions = [last_user(body) for body in requests if "Statement:" in last_user(body)]
    assert all("Document 2: Tickets are sold at the gate." in question for question in questions)


async def test_what_the_user_only_asked_is_judged() -> None:
    asked = VIEW.model_copy(update={"question": "Is the fee Rs 500?", "reply": "Yes, the fee is Rs 500."})
    judgement = await judged(probabilities, asked)
    assert "rule" not in judgement.units[-1].details


async def test_what_the_user_said_is_no_hallucination() -> None:
    history = (Message(role="user", text="My mail is a.b@mail.com"), *HISTORY[1:])
    view = VIEW.model_copy(update={"history": history, "reply": "Email: a.b@mail.com"})
    judgement = await judged(probabilities, view)
    assert (judgement.flagged, judgement.spans, judgement.score) == (False, (), 1.0)
    assert judgement.units[-1].details == {"rule": "repeats what the user said"}


async def test_a_number_that_the_user_said_of_something_else_is_judged() -> None:
    judge, requests = detector(probabilities)
    court = Passage(id="court#0", document="court", text="The court fee is Rs 100.")
    question = "I paid Rs 500 for a phone. What is the court fee?"
    judgement = await judge.detect(TurnView(question=question, passages=(court,), reply="The fee is Rs 500."))
    assert "rule" not in judgement.units[-1].details
    assert len(requests) > 0


async def test_the_threshold_can_be_moved() -> None:
    judgement = await judged(probabilities, overlap=False, threshold=4.9)
    assert (judgement.flagged, judgement.spans) == (False, ())


async def test_a_question_without_an_answer_fails_the_judgement() -> None:
    judgement = await judged(lambda b: "Maybe" if "Fact or Talk" in last_user(b) else probabilities(b))
    assert (judgement.outcome, judgement.spans, judgement.flagged) == ("failed", None, None)
    assert len(judgement.calls) > 0


async def test_a_verdict_stands_when_the_model_gives_no_reason() -> None:
    too_long = httpx2.Response(400, json={"error": {"message": "too long"}})
    judgement = await judged(lambda b: too_long if "What is wrong?" in last_user(b) else probabilities(b))
    undisturbed = await judged(probabilities)
    assert (judgement.outcome, judgement.score) == ("scored", undisturbed.score)
    assert judgement.spans is not None
    assert [(span.text, span.reason) for span in judgement.spans] == [
        ("Call 555-0134 for tickets.", "The model gave no reason.")
    ]
    error = str(judgement.units[1].details["error"])
    assert "refused the request with status 400: too long" in error
    assert [call.error is None for call in judgement.calls].count(False) == 1
    assert all("error" not in unit.details for unit in (judgement.units[0], judgement.units[2]))


async def test_a_knowledge_base_that_fails_fails_the_judgement() -> None:
    class Broken(Shelf):
        async def search(self, query: str, k: int) -> tuple[Passage, ...]:
            raise OperationalError("the index is gone.")

    judgement = await judged(probabilities, VIEW.model_copy(update={"knowledge": Broken()}))
    assert (judgement.outcome, judgement.error) == ("failed", "the index is gone.")
    assert [call.purpose for call in judgement.calls] == ["halludetect.reformulate"]


async def test_an_unforeseen_error_is_kept_with_its_type(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(Shelf):
        async def search(self, query: str, k: int) -> tuple[Passage, ...]:
            raise KeyError("row")

    judgement = await judged(probabilities, VIEW.model_copy(update={"knowledge": Odd()}))
    assert (judgement.outcome, judgement.error) == ("failed", "KeyError: 'row'")
    assert "halludetect failed on a reply: KeyError" in caplog.text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reply": "?!"}, "no words"),
        ({"passages": ()}, "no evidence"),
        ({"passages": (Passage(id="a", document="a", text=" "),)}, "no evidence"),
    ],
)
async def test_with_nothing_to_judge_it_abstains(change: dict[str, Any], reason: str) -> None:
    judge, requests = detector(probabilities)
    judgement = await judge.detect(VIEW.model_copy(update=change))
    assert judgement.outcome == "abstained"
    assert reason in (judgement.error or "")
    assert requests == []


@pytest.mark.parametrize("reading", ["probability", "mixture"])
async def test_a_reply_to_thanks_that_claims_nothing_is_clean_without_evidence_or_search(
    reading: str,
) -> None:
    judge, requests = detector(probabilities, reading=reading)
    thanks = {"question": "Thank you!", "reply": "You are welcome!", "passages": (), "knowledge": Shelf()}
    judgement = await judge.detect(VIEW.model_copy(update={**thanks, "history": ()}))
    assert (judgement.outcome, judgement.flagged, judgement.spans) == ("scored", False, ())
    assert requests == []


async def test_cut_evidence_is_marked() -> None:
    long = Passage(id="x#0", document="x", text="word " * 100)
    view = VIEW.model_copy(update={"passages": (OWN, long)})
    assert (await judged(probabilities, view, max_evidence_characters=100)).truncated


def words(analyses: list[str], grades: str, result: str = '{"hallucinations": []}') -> Script:
    """The word reading's answers: the analyses in turn, the refiner's and the result's."""
    left = list(analyses)

    def script(body: dict[str, Any]) -> str | httpx2.Response:
        name = body["response_format"]["json_schema"]["name"]
        return left.pop(0) if name == "RoughAnalysis" else grades if name == "FineAnalysis" else result

    return script


def rough(*quotes: str) -> str:
    return json.dumps({"hallucinations": [{"reason": "not there", "sentence": quote} for quote in quotes]})


def fine(*severities: int) -> str:
    grades = [{"number": i, "explanation": "so", "severity": s} for i, s in enumerate(severities, start=1)]
    return json.dumps({"grades": grades})


async def test_lists_are_voted_on_graded_filtered_and_concluded() -> None:
    offer, call = "Feel free to ask more.", "Call 555-0134 for tickets."
    result = json.dumps({"hallucinations": [{"number": 1, "reason": "No number in the documents."}]})
    script = words(
        [rough(call, offer), rough(call, offer), rough("The pool opens at 6.")], fine(5, 1), result
    )
    judge, requests = detector(script, reading="word", samples=3)
    judgement = await judge.detect(VIEW)
    assert (judgement.score, judgement.flagged, len(requests)) == (5.0, True, 5)
    assert judgement.spans is not None
    [span] = judgement.spans
    assert (span.text, span.severity, span.reason) == (call, 5.0, "No number in the documents.")
    assert [(unit.text, unit.score) for unit in judgement.units] == [(call, 5.0), (offer, 1.0)]
    assert [body["temperature"] for body in requests] == [0.7, 0.7, 0.7, 0.0, 0.0]
    assert [body["seed"] for body in requests[:3]] == [0, 1, 2]


@pytest.mark.parametrize(("examples", "shown"), [(True, [2, 1, 0]), (False, [0, 0, 0])])
async def test_lists_can_be_asked_for_without_answered_examples(examples: bool, shown: list[int]) -> None:
    script = words([rough("Call 555-0134 for tickets.")], fine(5))
    judge, requests = detector(script, reading="word", samples=1, examples=examples)
    assert (await judge.detect(VIEW)).score == 5.0
    assert [sum(message["role"] == "assistant" for message in body["messages"]) for body in requests] == shown


@pytest.mark.parametrize(("samples", "variant"), [(1, "word, one list"), (2, "word")])
def test_one_list_is_no_vote_and_so_not_as_published(samples: int, variant: str) -> None:
    method = describe_method(detector(words([], ""), reading="word", samples=samples)[0])
    assert (method.variant, method.as_published) == (variant, samples > 1)


async def test_what_the_user_said_is_not_graded_and_keeps_its_place() -> None:
    mail = "Email: a.b@mail.com"
    reply = f"The pool opens at 6. {mail}. Call 555-0134."
    view = VIEW.model_copy(update={"question": "Write. My mail is a.b@mail.com.", "reply": reply})
    quotes = ["The pool opens at 6.", f"{mail}.", "Call 555-0134."]
    judge, requests = detector(words([rough(*quotes)] * 3, fine(1, 5)), reading="word")
    judgement = await judge.detect(view)
    assert [(unit.text, unit.score) for unit in judgement.units] == [
        (quotes[0], 1.0),
        (quotes[1], 1.0),
        (quotes[2], 5.0),
    ]
    assert judgement.units[1].details["rule"] == "repeats what the user said"
    assert mail not in last_user(requests[3]).split("Possible errors:")[1]


async def test_empty_lists_are_a_clean_reply_at_the_lowest_severity() -> None:
    judge, requests = detector(words([rough(), rough(), rough()], ""), reading="word")
    judgement = await judge.detect(VIEW)
    assert (judgement.score, judgement.flagged, judgement.spans, len(requests)) == (1.0, False, (), 3)


async def test_objections_that_quote_nothing_fail_and_are_never_clean() -> None:
    judgement = await judged(words([rough(" "), rough(""), rough()], ""), reading="word")
    assert (judgement.outcome, judgement.flagged) == ("failed", None)
    assert judgement.error == "analysis: a hallucination without its sentence."


async def test_a_minority_of_unparseable_samples_is_passed_over() -> None:
    assert (await judged(words(["{", rough(), rough()], ""), reading="word")).outcome == "scored"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (words(["{", "{", rough()], ""), "analysis: the model's answer is no RoughAnalysis"),
        (words([rough("The pool opens at 6.")] * 3, "{"), "refiner: the model's answer is no FineAnalysis"),
        (words([rough("The pool opens at 6.")] * 3, fine()), "refiner: no severity for hallucination 1 of 1"),
    ],
)
async def test_what_does_not_parse_fails_and_is_never_clean(script: Script, reason: str) -> None:
    judgement = await judged(script, reading="word")
    assert (judgement.outcome, judgement.spans) == ("failed", None)
    assert reason in (judgement.error or "")


async def test_a_result_that_does_not_parse_leaves_the_analysis_reason() -> None:
    judgement = await judged(words([rough(REPLY[21:47])] * 3, fine(5), "{"), reading="word")
    assert (judgement.outcome, judgement.score) == ("scored", 5.0)
    assert [span.reason for span in judgement.spans or ()] == ["not there"]
    details = judgement.units[0].details
    assert (details["votes"], details["refiner"]) == (1.0, "so")
    assert "result: the model's answer is no Result" in str(details["error"])


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="detector halludetect: there is no option `treshold`"):
        detector(probabilities, treshold=3)

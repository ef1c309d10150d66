"""The ladder of a guarded chatbot, rung by rung."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.models.prompt import load_prompt
from hallulab.agents.served_model import ClaimCheck
from hallulab.chatbots.guarded.record import STEP
from hallulab.chatbots.protocol import describe_parts_version
from hallulab.chatbots.registry import (
    ComponentFactory,
    compute_chatbot_version,
    make_chatbot,
    read_chatbot_options,
)
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.scenarios.transcript import Message
from tests.chatbots.guarded.wrapped import Finds, Says, Unplaced, asked, failing, guarded, purposes
from tests.chatbots.stage import SCENARIO, stage
from tests.kit.refusals import refusal

GENERAL, SENSITIVE = "Does the cream smell?", "Can pregnant women use the cream?"
REFUSAL = "I am not sure enough of my answer to give it to you. A human expert will look at your question."


def policy(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "mine.yaml"
    told = "says: {abstain: 'No answer on {topics}.', human: Wait.}"
    topic = "topics: {pregnancy: {sensitive: true, words: [pregnant]}}"
    path.write_text("\n".join(["name: mine", topic, told, *lines]))
    return str(path)


async def test_a_reply_below_the_threshold_passes_unchanged() -> None:
    reply, record = await asked(guarded(Says("It smells [1]."), Finds(0.49)), GENERAL)
    assert reply.text == "It smells [1]."
    assert (record.action, record.shown, record.threshold) == ("passed", 0, 0.55)
    assert record.reason == "H = 0.49 is below τ = 0.55"
    assert not record.escalated


async def test_the_same_score_is_flagged_on_a_sensitive_topic_and_made_again() -> None:
    bot = Says("It is safe.", "It is not tested.")
    reply, record = await asked(guarded(bot, Finds(0.49, 0.48)), SENSITIVE)
    assert (record.sensitive, record.threshold) == (True, 0.49)
    assert record.topics == {"pregnancy": "'pregnant' in the question"}
    assert (record.action, record.shown) == ("cured", 1)
    assert reply.text == "It is not tested [1]."
    assert record.marked == "⟦It is safe⟧ [no source]."
    assert record.reason == "H fell from 0.49 to 0.48 when the reply was made again"


async def test_a_general_reply_is_marked_and_shown() -> None:
    reply, record = await asked(guarded(Says("It smells of roses."), Finds(0.6)), GENERAL)
    assert reply.text == record.marked == "⟦It smells of roses⟧ [no source]."
    assert (record.action, record.shown) == ("marked", 0)


async def test_a_flagged_reply_without_a_place_is_marked_whole_and_gets_no_source() -> None:
    bot = Says("The cream is not tested on expectant mothers. It smells.")
    reply, record = await asked(guarded(bot, Unplaced()), GENERAL)
    marked = "⟦The cream is not tested on expectant mothers [no source]. It smells⟧ [no source]."
    assert (reply.text, record.marked, record.action) == (marked, marked, "marked")


async def test_a_ladder_without_marks_is_not_said_to_have_marked(tmp_path: Path) -> None:
    bot = guarded(Says("It smells."), Finds(0.9), policy=policy(tmp_path, "ladder: {general: []}"))
    reply, _ = await asked(bot, GENERAL)
    assert reply.text == "It smells."
    assert reply.steps[-2].text.splitlines()[2] == (
        "shown as it is, for the policy marks nothing: H = 0.90 reaches τ = 0.55: unsupported is “It smells.”"
    )


async def test_what_persists_on_a_sensitive_topic_is_withheld_and_handed_over() -> None:
    detector = Finds(0.8, 0.7)
    reply, record = await asked(guarded(Says("It is safe.", "Quite safe."), detector), SENSITIVE)
    assert reply.text == REFUSAL
    assert (record.action, record.shown, record.refused) == ("human", None, True)
    assert record.marked == "⟦Quite safe⟧ [no source]."
    assert record.reason == (
        "H = 0.80 reaches τ = 0.49 on the topic pregnancy: unsupported is “It is safe.”; made again, H = 0.70"
    )
    assert [view.reply for view in detector.views] == ["It is safe.", "Quite safe."]


async def test_any_bot_is_asked_again_in_the_users_message_with_what_was_flagged() -> None:
    bot = Says("It is safe.", "Not tested.")
    said = [("user", "Hi"), ("assistant", "Hello"), ("user", SENSITIVE)]
    await guarded(bot, Finds(0.9, 0.0)).reply([Message(role=role, text=text) for role, text in said])
    first, again = bot.histories
    assert [(one.role, one.text) for one in first] == said
    [message] = load_prompt("hallulab.chatbots", "stricter").fill(question=SENSITIVE, claims="“It is safe.”")
    assert [(one.role, one.text) for one in again] == [*said[:2], ("user", message.text)]


async def test_the_detector_sees_the_users_question_and_not_the_stricter_one() -> None:
    detector = Finds(0.9, 0.0)
    await asked(guarded(Says("It is safe.", "Not tested."), detector), SENSITIVE)
    assert [view.question for view in detector.views] == [SENSITIVE, SENSITIVE]


async def test_it_is_made_again_as_often_as_the_policy_says(tmp_path: Path) -> None:
    wanted = policy(tmp_path, "regenerations: 3")
    bot = Says("One.", "Two.", "Three.", "Four.")
    _, record = await asked(guarded(bot, Finds(0.9, 0.6, 0.7, 0.8), policy=wanted), SENSITIVE)
    assert [attempt.score for attempt in record.attempts] == [0.9, 0.6, 0.7, 0.8]
    assert record.marked == "⟦Two⟧ [no source]."


async def test_handing_over_without_abstaining_shows_the_marked_reply(tmp_path: Path) -> None:
    wanted = policy(tmp_path, "ladder: {sensitive: [cite, human]}")
    reply, record = await asked(guarded(Says("It is safe."), Finds(0.9), policy=wanted), SENSITIVE)
    assert reply.text == "It is safe [no source].\n\nWait."
    assert (record.action, record.shown, record.refused, record.escalated) == ("human", 0, False, True)


async def test_abstaining_alone_calls_nobody(tmp_path: Path) -> None:
    wanted = policy(tmp_path, "ladder: {sensitive: [abstain]}")
    reply, record = await asked(guarded(Says("It is safe."), Finds(0.9), policy=wanted), SENSITIVE)
    assert reply.text == "No answer on pregnancy."
    assert record.action == "abstained"


async def test_a_reply_that_was_not_judged_passes_in_general_and_is_not_called_clean() -> None:
    reply, record = await asked(guarded(Says("It smells."), Finds(None)), GENERAL)
    assert reply.text == "It smells."
    assert (record.action, record.reason) == ("unjudged", "the detector failed: no answer")
    assert (record.attempts[0].flagged, record.attempts[0].spans) == (None, None)


async def test_a_reply_that_was_not_judged_is_withheld_on_a_sensitive_topic() -> None:
    reply, record = await asked(guarded(Says("It is safe."), Finds(None)), SENSITIVE)
    assert reply.text == "I am not sure enough of my answer to give it to you."
    assert (record.action, record.marked) == ("abstained", None)


async def test_courtesies_need_no_judgement_on_a_sensitive_topic() -> None:
    reply, record = await asked(guarded(Says("What do you want to know?"), Finds(None)), SENSITIVE)
    assert reply.text == "What do you want to know?"
    assert record.reason == "the detector failed: no answer; the reply claims nothing"


async def test_a_second_reply_that_was_not_judged_is_no_cure() -> None:
    _, record = await asked(guarded(Says("It is safe.", "Still."), Finds(0.9, None)), SENSITIVE)
    assert record.action == "human"
    assert record.reason.endswith("; made again, the reply could not be judged (no answer)")


@pytest.mark.parametrize("error", [failing("no reply"), RuntimeError("no reply")], ids=["told", "raised"])
async def test_a_bot_that_fails_when_asked_again_is_no_cure(error: Exception) -> None:
    reply, record = await asked(guarded(Says("It is safe.", error), Finds(0.9)), SENSITIVE)
    assert reply.text == REFUSAL
    assert record.attempts[1].reply is None
    assert "made again, the chatbot failed (" in record.reason


async def test_all_calls_and_the_steps_of_both_drafts_are_kept() -> None:
    reply, _ = await asked(guarded(Says("It is safe.", "Not tested."), Finds(0.9, 0.0)), SENSITIVE)
    judge = "chatbot.guard.judge.check"
    assert purposes(reply.calls) == ["chatbot.generate", judge, "chatbot.guard.again.generate", judge]
    drafts = ["draft", "wrapped_reply", "again 1: draft", "again 1: wrapped_reply"]
    assert [step.name for step in reply.steps] == [*drafts, "guard", STEP]
    assert (reply.query, [passage.id for passage in reply.passages]) == ("the query", ["leaflet#0"])


def test_it_checks_claims_as_its_guard_does() -> None:
    context, _, _ = stage(options={"detector": "lexical"})
    found = make_chatbot("guarded", context).claim_check  # type: ignore[attr-defined]
    assert found == ClaimCheck(methods=("hallulab.detectors.lexical.detector.LexicalDetector",))


def test_a_detector_is_made_once_for_equal_options() -> None:
    context, _, _ = stage()
    workshop, asking = ComponentFactory(), DetectorContext(models=context.models)
    assert workshop.detector("lexical", asking) is workshop.detector("lexical", asking)
    other = DetectorContext(models=context.models, options={"threshold": 0.9})
    assert workshop.detector("lexical", asking) is not workshop.detector("lexical", other)


def test_its_version_depends_on_the_wrapped_chatbot_and_the_policys_content(tmp_path: Path) -> None:
    path = policy(tmp_path)
    before = compute_chatbot_version("guarded", {"policy": path})
    assert before != compute_chatbot_version("guarded", {"policy": path, "chatbot": "editor"})
    Path(path).write_text(Path(path).read_text() + "\nregenerations: 2\n")
    assert before != compute_chatbot_version("guarded", {"policy": path})


def test_the_guards_version_is_part_of_it() -> None:
    assert describe_parts_version(guarded(Says(), Finds())) == "v1"
    context, _, _ = stage()
    assert describe_parts_version(make_chatbot("vanilla", context)) == ""


def test_its_options_are_resolved_with_those_of_the_wrapped_chatbot() -> None:
    found = read_chatbot_options("guarded", {"detector": "lexical"})
    assert found["chatbot"] == {"kind": "vanilla", "options": read_chatbot_options("vanilla", {})}
    assert found["detector"] == {"kind": "lexical", "options": {}, "model": None}
    assert found["policy"]["name"] == "metarag"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"chatbot": "guarded"},
            "chatbot guarded: option `chatbot`: a guarded chatbot cannot wrap another one.",
        ),
        (
            {"chatbot": {"kind": "vanilla", "options": {"heat": 1}}},
            "chatbot vanilla: there is no option `heat`",
        ),
        ({"detector": "guess"}, "there is no detector 'guess'"),
        ({"detector": {"kind": "metarag", "model": "x"}}, "no model named 'x' under `models`"),
        ({"policy": "nowhere.yaml"}, "nowhere.yaml: no such policy."),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, object], message: str) -> None:
    context, _, _ = stage(options=options)
    assert refusal(make_chatbot, "guarded", context).startswith(message)


def test_numbers_are_no_thresholds_of_a_detector_with_another_scale(tmp_path: Path) -> None:
    context, _, _ = stage(options={"detector": "halludetect"})
    assert refusal(make_chatbot, "guarded", context) == (
        "chatbot guarded: the policy metarag has thresholds from 0 to 1, and the scores of detector "
        "halludetect are on another scale. Give it a policy with `thresholds: {general: detector, "
        "sensitive: detector}`."
    )
    own = policy(tmp_path, "thresholds: {general: detector, sensitive: detector}")
    context, _, _ = stage(options={"detector": "halludetect", "policy": own})
    make_chatbot("guarded", context)


async def test_a_topic_of_the_scenario_is_sensitive_with_the_scenarios_threshold() -> None:
    scenario = SCENARIO.model_copy(update={"identity_thresholds": {"creams": 0.2}})
    _, record = await asked(guarded(Says("It smells."), Finds(0.1), scenario), GENERAL)
    assert record.topics == {"creams": "the label of passage leaflet#0"}
    assert (record.sensitive, record.threshold) == (True, 0.2)


async def test_a_failed_tagger_makes_the_topic_sensitive(tmp_path: Path) -> None:
    wanted = policy(tmp_path, "tagger: model")
    silent = guarded(Says("It smells."), Finds(0.1), changes={"route": {"Z": 1.0}}, policy=wanted)
    _, record = await asked(silent, GENERAL)
    assert (record.sensitive, record.threshold, record.topics) == (True, 0.49, {})
    assert record.topics_error == "guard.topic: the model printed 'Z', none of A, B."

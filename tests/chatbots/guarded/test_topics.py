"""Topics of question, query and evidence, by words, labels and the model."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hallulab.chatbots.guarded.policy import Policy, Topic
from hallulab.chatbots.guarded.topics import Tags, TopicSubject, match_topics_by_rules, tag
from hallulab.scenarios.transcript import Passage
from hallulab.testing.scripted import last_user, scripted_pool

TOPICS = {
    "pregnancy": Topic(sensitive=True, words=("pregnant", "third trimester")),
    "asylum": Topic(sensitive=True, about="refugees", words=("refugee",)),
}


def asked(question: str, *passages: str, query: str | None = None, label: str | None = None) -> TopicSubject:
    found = [Passage(id=f"d#{at}", document="d", text=text, topic=label) for at, text in enumerate(passages)]
    return TopicSubject(question, query, found)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (asked("Can pregnant women fly?"), {"pregnancy": "'pregnant' in the question"}),
        (asked("Do REFUGEES get help?"), {"asylum": "'refugee' in the question"}),
        (asked("Can she?", query="Can a pregnant woman fly?"), {"pregnancy": "'pregnant' in the query"}),
        (
            asked("Can I?", "It is harmful in the third trimester."),
            {"pregnancy": "'third trimester' in the passage d#0"},
        ),
        (asked("It is the third. A trimester ends."), {}),
        (asked("Can I?", "Fly.", label="asylum"), {"asylum": "the label of passage d#0"}),
        (asked("Can I?", "Fly.", label="travel"), {}),
    ],
)
def test_words_and_labels_tag(given: TopicSubject, found: Mapping[str, str]) -> None:
    assert match_topics_by_rules(TOPICS, (), given) == found


def test_passages_with_one_identifier_are_all_read() -> None:
    passages = [Passage(id="p", document="d", text=text) for text in ("For pregnant women.", "Fly.")]
    found = match_topics_by_rules(TOPICS, (), TopicSubject("Can I?", None, passages))
    assert found == {"pregnancy": "'pregnant' in the passage p"}


def test_a_topic_of_the_scenario_needs_no_words() -> None:
    found = match_topics_by_rules(TOPICS, ["labour"], asked("Can I?", "Work.", label="labour"))
    assert found == {"labour": "the label of passage d#0"}


def tagging(tagger: str) -> Policy:
    given = {"name": "p", "tagger": tagger, "topics": TOPICS, "says": {"abstain": "No.", "human": "Wait."}}
    return Policy.model_validate(given)


async def tags(tagger: str, answer: str | Mapping[str, float], given: TopicSubject) -> tuple[Tags, list[str]]:
    pool, transport = scripted_pool(lambda body: answer)
    session = pool.session("chatbot")
    found = await tag(tagging(tagger), (), given, session)
    assert [call.purpose for call in session.calls] == ["chatbot.guard.topic"] * len(transport.requests)
    return found, [last_user(body) for body in transport.requests]


async def test_the_model_chooses_by_a_letter() -> None:
    found, [request] = await tags("model", {"B": 0.75, "C": 0.25}, asked("May they stay?", "Rules."))
    assert found == Tags(found={"asylum": "the model, P = 0.75"})
    assert request == (
        "Topics:\nA. pregnancy: pregnancy\nB. asylum: refugees\nC. something else\n\n"
        "Documents: Rules.\nQuestion: May they stay?\n\nLetter:"
    )


async def test_the_model_may_choose_none() -> None:
    assert (await tags("model", {"C": 0.9, "A": 0.1}, asked("Is a pregnant cat cute?")))[0] == Tags(found={})


async def test_rules_ask_no_model() -> None:
    assert await tags("rules", "", asked("Hello")) == (Tags(found={}), [])


async def test_both_find_more_than_one() -> None:
    found, _ = await tags("both", {"B": 1.0}, asked("Can a pregnant woman stay?"))
    assert found.found == {"pregnancy": "'pregnant' in the question", "asylum": "the model, P = 1.00"}


async def test_a_model_that_gives_no_letter_is_an_error_and_not_no_topic() -> None:
    found, _ = await tags("both", {"Z": 1.0}, asked("Hello"))
    assert found.found == {}
    assert found.error == "guard.topic: the model printed 'Z', none of A, B, C."

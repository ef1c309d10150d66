"""Users who write another language than English."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.users.personas import find_manner, request_in_language, speaking
from hallulab.agents.users.user import SimulatedUser
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.simulator.records.choices import choose_language, compute_scenario_version
from hallulab.simulator.records.experiment import Experiment
from hallulab.testing.scripted import last_user, scripted_pool

PERSONA = Persona(
    id="kutta", name="विक्रम", grievance="पिल्ला लिया।", goals=("शुल्क जानना",), manner="छोटा।",
    summary="शुल्क पूछा।",
)  # fmt: skip


def test_the_first_message_and_the_last_line_ask_for_the_language() -> None:
    request = [ChatMessage("system", "You write."), ChatMessage("user", "Notes.\nNext message of A:")]
    assert [one.text for one in request_in_language(request, "hi")] == [
        "You write. Whatever language the notes and examples are in, you write Hindi.",
        "Notes.\nNext message of A (in Hindi):",
    ]
    assert request_in_language(request, None) == request


async def test_a_question_in_another_language_gets_no_english_one() -> None:
    pool, transport = scripted_pool(lambda body: "कुत्ते का पंजीकरण कितने का है")
    user = SimulatedUser(PERSONA, "नगर सेवाएँ", pool, language="hi")
    assert (await user.next(())).text == "कुत्ते का पंजीकरण कितने का है"
    assert last_user(transport.requests[0]).endswith("(in Hindi):")


def test_a_manner_names_the_language() -> None:
    manner = find_manner("second-language")
    assert speaking(PERSONA, manner, "hi").manner.startswith("Hindi is a foreign language")
    assert speaking(PERSONA, manner).manner.startswith("English is a foreign language")


@pytest.mark.parametrize(("experiment", "chosen"), [(None, "hi"), ("de", "de"), ("en", None)])
def test_the_experiment_says_the_language_before_the_pack(experiment: str | None, chosen: str | None) -> None:
    pack = load_scenario("nagar-seva")
    assert choose_language(Experiment(language=experiment), pack) == chosen


def test_a_language_that_is_not_known_is_refused() -> None:
    with pytest.raises(ValidationError, match="must be a code of ISO 639-1 such as de or hi"):
        Experiment(language="hindi")


def test_the_language_of_a_pack_changes_no_version_of_it() -> None:
    pack = load_scenario("nagar-seva")
    assert compute_scenario_version(pack) == compute_scenario_version(
        pack.model_copy(update={"language": None})
    )


def test_the_hindi_pack_has_its_personas_and_documents() -> None:
    pack = load_scenario("nagar-seva")
    assert (len(pack.personas), len(pack.documents)) == (16, 14)

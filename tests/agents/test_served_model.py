"""Which model it is that an endpoint serves under a name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import Prompt
from hallulab.agents.models.recording import Recording
from hallulab.agents.served_model import (
    ClaimCheck,
    find_catalogue_name,
    find_known_name,
    identify_model,
    list_model_warnings,
    read_claim_check,
    read_tuned_number,
)
from hallulab.agents.serving.catalogue import CATALOGUE, GGUF_NAME
from hallulab.testing.scripted import scripted_pool
from tests.kit.refusals import refusal

OURS = "qwen2.5-coder-1.5b"
SERVED = "/somewhere/hallulab/models/qwen2.5-coder-1.5b-bf16-cc324af070c2"
"""The folder that `hallulab serve` makes of it."""


async def asked(model: str, root: str | None, recording: Recording | None = None) -> ModelPool:
    """A pool that has asked an endpoint what it serves."""
    pool, _ = scripted_pool(lambda _: "", model, root, recording=recording)
    await pool.check()
    return pool


@pytest.mark.parametrize(
    ("name", "root", "known"),
    [
        (OURS, SERVED, OURS),
        ("mine", SERVED, OURS),
        ("mine", SERVED.replace("bf16", "w8a8") + "/", OURS),
        (OURS, "Qwen/Qwen2.5-7B-Instruct", None),
        (OURS, "/models/qwen2.5-coder-1.5b", None),
        ("mine", "meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct"),
        (OURS, None, OURS),
        ("mine", None, None),
    ],
)
def test_a_model_is_known_by_its_root_and_by_its_name_only_without_one(
    name: str, root: str | None, known: str | None
) -> None:
    assert find_known_name(name, root) == known


def test_every_model_out_of_wheels_is_known_by_its_own_folder() -> None:
    folders = {
        name: f"/cache/models/{name}-bf16-{model.wheels.digests[GGUF_NAME][:12]}"
        for name, model in CATALOGUE.items()
        if model.wheels is not None
    }
    assert all(find_known_name("x", folder) == name for name, folder in folders.items())


@pytest.mark.parametrize(
    ("name", "root", "stands"),
    [
        ("mine", SERVED, OURS),
        (OURS, None, OURS),
        (OURS, "other/model", "root other/model"),
        ("mine", OURS, f"root {OURS}"),
        ("mine", None, "mine"),
    ],
)
async def test_what_stands_for_a_model_in_a_results_identity(
    name: str, root: str | None, stands: str
) -> None:
    assert identify_model((await asked(name, root)).get()) == stands


async def test_a_recording_keeps_what_was_served(tmp_path: Path) -> None:
    recording = Recording.record(tmp_path / "r.jsonl")
    recording.put("search", "k", [])
    await asked(OURS, "other/model", recording)
    recording.close()
    replayed = await asked(OURS, SERVED, Recording.replay(tmp_path / "r.jsonl"))
    assert (replayed.get().root, find_catalogue_name(replayed.get())) == ("other/model", None)


async def test_a_replay_doubts_what_was_served() -> None:
    recording = Recording()
    recording.replaying = True
    recording.put("root", OURS, "other/model")
    replayed = ModelPool({"default": Endpoint(OURS)}, recording=recording)
    await replayed.check()
    assert list_model_warnings(replayed) == [
        f"the recorded server serves other/model as '{OURS}', which is not the catalogue's model. Numbers "
        "tuned for that model are not used."
    ]


async def test_a_recording_of_before_knows_the_name_alone_and_that_will_do(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"kind":"search","key":"k","answer":[]}\n')
    replayed = await asked(OURS, "other/model", Recording.replay(tmp_path / "r.jsonl"))
    assert (replayed.get().root, find_catalogue_name(replayed.get())) == (None, OURS)
    assert list_model_warnings(replayed) == []


@pytest.mark.parametrize(
    ("name", "root", "said"),
    [
        (OURS, SERVED, []),
        ("mine", "other/model", []),
        (
            OURS,
            "other/model",
            [
                f"http://127.0.0.1:9/v1 serves other/model as '{OURS}', which is not the catalogue's "
                "model. Numbers tuned for that model are not used."
            ],
        ),
        (
            OURS,
            None,
            [
                f"http://127.0.0.1:9/v1 does not say which model it serves as '{OURS}'. By its name it "
                "is taken for the catalogue's model, and numbers tuned for that model are used."
            ],
        ),
    ],
)
async def test_a_wrong_or_unchecked_name_gives_a_warning(
    name: str, root: str | None, said: list[str]
) -> None:
    assert list_model_warnings(await asked(name, root)) == said


@pytest.mark.parametrize(
    ("told", "root"), [(" a\nb ", "a b"), ("", None), ("x" * 4097, None), ("\ud800", "\ufffd")]
)
async def test_a_root_is_taken_as_text_that_can_be_kept(told: str, root: str | None) -> None:
    assert (await asked("m", told)).get().root == root


def test_numbers_are_tuned_for_models_of_the_catalogue() -> None:
    assert read_tuned_number("hallulab.agents.users", "goal_told", OURS) == 0.9
    assert read_tuned_number("hallulab.chatbots", "fact-checker", OURS) == 0.7
    assert read_tuned_number("hallulab.chatbots", "fact-checker", None) is None
    assert read_tuned_number("hallulab.chatbots", "vanilla", OURS) is None


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
    assert refusal(read_claim_check, "chatbot mine", SimpleNamespace(claim_check="m")) == (
        "chatbot mine: its `claim_check` is 'm', no hallulab.ClaimCheck. Correct it or leave it out."
    )


def test_a_method_of_ours_in_an_old_run_folder_has_its_name_of_today() -> None:
    read = ClaimCheck.model_validate_json(
        '{"methods": ["detectors.lexical.detector.Lexical", "theirs.Judge"]}'
    )
    assert read.methods == ("hallulab.detectors.lexical.detector.Lexical", "theirs.Judge")

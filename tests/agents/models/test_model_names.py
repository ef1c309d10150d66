"""A model's name among those that an endpoint serves."""

from __future__ import annotations

import pytest

from hallulab.agents.models.model_names import describe_served, find_served_name


@pytest.mark.parametrize(
    ("name", "served", "found"),
    [
        ("llama3.2", ["llama3.2:latest", "qwen3:4b"], "llama3.2:latest"),
        ("llama3.2:latest", ["llama3.2"], "llama3.2"),
        ("gemini-2.0-flash", ["models/gemini-2.0-flash"], "models/gemini-2.0-flash"),
        ("Qwen/Qwen3-4B", ["qwen/qwen3-4b"], "qwen/qwen3-4b"),
        ("llama3.2", ["llama3.2:1b"], None),
        ("m", ["M", "models/m"], None),
        ("m", ["m", "m:latest"], "m"),
    ],
)
def test_which_name_is_the_same_model(name: str, served: list[str], found: str | None) -> None:
    assert find_served_name(name, served) == found


def test_a_long_list_shows_near_names_and_ends_at_a_whole_one() -> None:
    served = [f"provider{number}/model-{number}" for number in range(400)] + ["meta/llama-3.3-70b"]
    told = describe_served("meta/llama-3.3-70b:nitro", served)
    assert told.startswith("near names: meta/llama-3.3-70b; it serves: provider0/model-0, ")
    assert told.endswith("provider10/model-10, provider11/model-11 and 389 more")

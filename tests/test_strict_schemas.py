"""Schemas that models are sent keep the rules of strict endpoints (OpenAI, Anthropic)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from hallulab.agents.models.answers import describe_schema
from hallulab.agents.models.fitting import make_strict
from hallulab.agents.users.chats import ChatCase
from hallulab.agents.users.personas import About, Case, GoalPair
from hallulab.chatbots.editor import EditedReply
from hallulab.chatbots.fact_checker import SplitReply
from hallulab.detectors.halludetect.strategies import FineAnalysis, Result, RoughAnalysis
from hallulab.detectors.metarag.together import JudgedFacts

SENT = [
    About,
    Case,
    ChatCase,
    EditedReply,
    FineAnalysis,
    GoalPair,
    JudgedFacts,
    Result,
    RoughAnalysis,
    SplitReply,
]


@pytest.mark.parametrize("schema", SENT)
def test_a_schema_is_strict_by_itself(schema: type[BaseModel]) -> None:
    """So nothing of it changes on the wire, and recorded answers stay those to the same request."""
    described = describe_schema(schema)
    assert make_strict(described) == described


def test_a_schema_that_is_not_is_made_strict_at_all_depths() -> None:
    class Inner(BaseModel):
        said: str = ""

    class Outer(BaseModel):
        inners: list[Inner]
        note: str | None = None

    schema: dict[str, Any] = make_strict(describe_schema(Outer))["json_schema"]["schema"]
    assert (schema["additionalProperties"], schema["required"]) == (False, ["inners", "note"])
    inner = schema["$defs"]["Inner"]
    assert (inner["additionalProperties"], inner["required"]) == (False, ["said"])


def test_a_schema_that_is_not_asked_to_be_strict_stays_as_it_is() -> None:
    told = {
        "type": "json_schema",
        "json_schema": {"name": "x", "schema": {"type": "object", "properties": {}}},
    }
    assert make_strict(told) == told

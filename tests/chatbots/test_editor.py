"""The editor's answer is read also where the endpoint does not hold a model to the schema."""

from __future__ import annotations

from hallulab.agents.models.answers import describe_schema
from hallulab.chatbots.editor import EditedReply


def test_a_seventh_problem_is_cut() -> None:
    edited = EditedReply.model_validate({"problems": list("abcdefg"), "reply": "It is free."})
    assert edited.problems == tuple("abcdef")


def test_the_request_still_asks_for_six() -> None:
    assert describe_schema(EditedReply)["json_schema"]["schema"]["properties"]["problems"]["maxItems"] == 6

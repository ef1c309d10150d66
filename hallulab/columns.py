"""The columns of the frames that a `Run` gives: name, pandas dtype and meaning, in one place.

What is not known or was not judged is `pandas.NA` in every column, so it is never counted as clean.
docs/python.md shows the same tables; a test holds it to this module.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column of a frame."""

    name: str
    """What it is called."""
    dtype: str
    """Its pandas dtype; a cell of dtype `object` is a list of texts."""
    meaning: str
    """What stands in it."""


_TURN = (
    Column("conversation", "string", "identifier of the conversation; with `turn` it names a reply"),
    Column("persona", "string", "identifier of the persona in its pack"),
    Column("chatbot", "string", "name of the chatbot"),
    Column("seed", "Int64", "seed of the conversation; persona and seed pair conversations of chatbots"),
    Column("turn", "Int64", "index of the turn, from 0"),
)
"""What every frame begins with."""

_COSTS = (
    Column("prompt_tokens", "Int64", "tokens that these calls read, as far as the servers told"),
    Column("completion_tokens", "Int64", "tokens that they wrote, likewise"),
    Column("seconds", "Float64", "their latencies, added up"),
)

TURNS = (
    *_TURN,
    Column("scenario", "string", "name of the scenario pack"),
    Column("model", "string", "name of the chatbot's model"),
    Column("user", "string", "what the user said"),
    Column("query", "string", "the stand-alone query that was searched for, where the chatbot made one"),
    Column("reply", "string", "what the chatbot answered"),
    Column("passages", "object", "texts of the passages that the chatbot was given, best first"),
    Column("documents", "object", "names of the documents that they were cut from, in the same order"),
    Column("calls", "Int64", "model calls of the chatbot"),
    *_COSTS,
    Column("stop_reason", "string", "why the conversation ended: `goal_reached`, `gave_up`, `max_turns`, "
           "`loop` or `error`"),
)  # fmt: skip
"""Columns of `Run.turns`."""

VERDICTS = (
    *_TURN,
    Column("detector", "string", "name of the detector"),
    Column("version", "string", "version of the detector"),
    Column("outcome", "string", "`scored`, `abstained` or `failed`"),
    Column("score", "Float64", "score of the reply, higher is worse"),
    Column("flagged", "boolean", "whether the score reaches the detector's threshold"),
    Column("spans", "Int64", "number of hallucinations; missing where the verdict does not say where"),
    Column("truncated", "boolean", "whether evidence or reply were cut to fit the model"),
    Column("calls", "Int64", "model calls of the detector"),
    *_COSTS,
    Column("error", "string", "why it abstained or failed"),
)
"""Columns of `Run.verdicts`."""

SPANS = (
    *_TURN,
    Column("detector", "string", "name of the detector"),
    Column("start", "Int64", "first character in the reply; missing where the text was not found there"),
    Column("end", "Int64", "one past the last character, likewise"),
    Column("text", "string", "the flagged text: `reply[start:end]`, or else the detector's quotation"),
    Column("severity", "Float64", "1 (harmless) to 5 (critical), of detectors that rate it"),
    Column("score", "Float64", "the detector's score of the span, higher is worse"),
    Column("reason", "string", "why it was flagged"),
    Column("evidence", "string", "text or identifier of the passage that the judgement rests on"),
)
"""Columns of `Run.spans`."""

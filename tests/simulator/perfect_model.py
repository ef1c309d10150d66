"""A model that is right about everything: what it must object to has the word `invented` in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import httpx2

from hallulab.testing.endpoint import instance
from hallulab.testing.scripted import completion, last_user

INVENTED = "invented"
REPLY = "Water boils at 100 degrees. A kettle takes three minutes."

PASSAGES = ["Water boils at 100 degrees."]
LABELLED = (
    ("Water boils at 100 degrees.", False),
    ("Water boils at 50 invented degrees.", True),
    ("It boils at 100 degrees, the water.", False),
    ("Tea needs 7 invented spoons of salt.", True),
)
"""Replies, and whether they are hallucinated."""

_WORDS = count()
"""What is random without a seed."""


def answer_perfectly(body: dict[str, Any]) -> str | Mapping[str, float] | httpx2.Response:
    """Answer in the form that is asked for."""
    asked = last_user(body)
    if body.get("tools"):
        return _call(body["tools"], asked)
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None and "follows this JSON schema" in asked:
        schema = json.loads(asked[asked.index("{", asked.rindex("JSON schema")) :])
    if schema is not None:
        return json.dumps(_fill(schema, asked))
    first = str(body["messages"][0]["content"])
    if "NOT SURE" in first or "NOT SURE" in asked:
        return _verify(asked.rpartition("Statement: ")[2], "max_tokens" in body and body["max_tokens"] > 1)
    if "apart into facts" in first + asked:
        lines = asked.rpartition("Answer:\n")[2].splitlines()
        return "\n".join(line.replace(". ", ": ", 1) for line in lines)
    if re.search(r"(?:Yes or No\.?|Does the text tell this\?|go on asking\?)$", asked):
        claimed = asked.rpartition("Response:")[2] or asked
        return _prefer("No" if INVENTED in claimed else "Yes", "No", "Yes")
    if asked.endswith("Letter:"):
        return _prefer("A", "A", "B", "C")
    if "random words" in asked:
        return f"apple {body.get('seed') or next(_WORDS)}"
    return REPLY


def _call(tools: Sequence[Mapping[str, Any]], asked: str) -> httpx2.Response:
    """Call the function whose description has most word beginnings of the message; the last one on a tie."""
    begins = {word[:4].lower() for word in re.findall(r"\w{4,}", asked)}
    functions = [tool["function"] for tool in reversed(tools)]
    chosen = max(functions, key=lambda one: sum(begin in one["description"].lower() for begin in begins))
    answer = completion("")
    call = {"name": chosen["name"], "arguments": "{}"}
    answer["choices"][0]["message"]["tool_calls"] = [{"id": "1", "type": "function", "function": call}]
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return httpx2.Response(200, json=answer)


def _prefer(word: str, *words: str) -> Mapping[str, float]:
    return {one: 0.96 if one == word else 0.03 / (len(words) - 1) for one in words}


def _verify(statement: str, printed: bool) -> str | Mapping[str, float]:
    wrong = (INVENTED in statement) != statement.startswith("It is not so: ")
    if printed:
        return "NO" if wrong else "YES"
    return _prefer("NO" if wrong else "YES", "YES", "NO", "NOT")


def _fill(schema: dict[str, Any], asked: str) -> Any:
    names = schema["properties"].keys()
    if "ice_is" in names:
        return {"ice_is": "cold"}
    if "same" in names:
        fact = asked.rpartition("Fact: ")[2].splitlines()[0]
        same, opposite = [f"So: {fact}", f"That is: {fact}"], [f"It is not so: {fact}"] * 2
        return {"same": same, "opposite": opposite}
    if "problems" in names:
        return {"problems": [], "reply": REPLY}
    if "grades" in names:
        numbers = re.findall(r"^(\d+)\. ", asked.rpartition("Possible errors:")[2], re.MULTILINE)
        grade = {"explanation": "Made up.", "severity": 5}
        return {"grades": [{"number": int(number), **grade} for number in numbers]}
    if "hallucinations" in names and "Reply:" in asked:
        reply = asked.rpartition("Reply:\n")[2].partition("\n\n")[0]
        found = [one for one in re.findall(r"[^.]+\.", reply) if INVENTED in one]
        return {"hallucinations": [{"reason": "Made up.", "sentence": one.strip()} for one in found]}
    return instance(schema, schema.get("$defs", {}))

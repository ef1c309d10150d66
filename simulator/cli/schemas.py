"""JSON Schemas of the files that users write, made from the classes that read them."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from hallulab.chatbots.guarded.policy import Policy
from hallulab.scenarios.packs.pack import Persona, ScriptedMessage
from hallulab.scenarios.packs.pack_files import PersonasFile, ScenarioFile
from hallulab.simulator.bench.sweep import Sweep
from hallulab.simulator.rag_trust.config import RagTrustConfig
from hallulab.simulator.records.experiment import Component, Experiment

SCHEMAS: Mapping[str, tuple[type[BaseModel], str]] = {
    "experiment": (Experiment, "an experiment file ([experiment.md](experiment.md))"),
    "scenario": (ScenarioFile, "`scenario.yaml` of a pack ([scenario-packs.md](scenario-packs.md))"),
    "personas": (PersonasFile, "`personas.yaml` of a pack ([scenario-packs.md](scenario-packs.md))"),
    "policy": (Policy, "a safeguard's policy ([safeguards.md](safeguards.md))"),
    "sweep": (Sweep, "a sweep of `hallulab bench` ([bench.md](bench.md#sweeps))"),
    "stress": (RagTrustConfig, "a file of `hallulab rag-trust` ([rag-trust.md](rag-trust.md))"),
}
"""Name of a schema → the model that reads such a file, and what the file is."""

_TEXT_OR_KEYS: tuple[type[BaseModel], ...] = (Component, ScriptedMessage)
"""Models in whose place a file may have a text."""


class _FileSchema(GenerateJsonSchema):
    """Describes each field by the docstring below it, and allows the short forms that files may have."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a model.

        Args:
            schema: pydantic's core schema of it.
        """
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        said = _read_docstrings(model)
        for name, field in model.model_fields.items():
            here = made.get("properties", {}).get(field.alias or name)
            if here is not None and name in said:
                here["description"] = said[name]
        if model is Component:
            made["required"] = ["name"]  # without a kind, the name is the kind
        if model is Persona:  # a script says what else a persona must have
            made["anyOf"] = [{"required": ["messages"]}, {"required": made["required"]}]
            made["required"] = ["id"]
        if model in _TEXT_OR_KEYS:
            return {"title": made.pop("title"), "anyOf": [{"type": "string"}, made]}
        return made


def render_schema(model: type[BaseModel]) -> str:
    """Return the JSON Schema of the files that a model reads."""
    made = model.model_json_schema(schema_generator=_FileSchema)
    described = {"$schema": GenerateJsonSchema.schema_dialect, **made}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def _read_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of those that it inherits from."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not issubclass(base, BaseModel) or base is BaseModel:
            continue
        [body] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                match below:
                    case ast.Expr(value=ast.Constant(value=str() as text)):
                        found[field.target.id] = " ".join(text.split())
    return found

"""JSON Schemas of the files that people write, made from the classes that read them."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from hallulab.chatbots.guarded.policy import Policy
from hallulab.scenarios.packs.pack import Persona, ScriptedMessage
from hallulab.scenarios.packs.pack_files import PersonasFile, ScenarioFile
from hallulab.simulator.bench.sweep import Sweep
from hallulab.simulator.rag_trust.config import RagTrustConfig
from hallulab.simulator.records.experiment import Component, Experiment


@dataclass(frozen=True)
class FileKind:
    """A kind of files."""

    model: type[BaseModel]
    """The class that reads them."""
    what: str
    page: str
    """The page of the docs about it."""


FILES: Mapping[str, FileKind] = {
    "experiment": FileKind(Experiment, "an experiment file", "experiment.md"),
    "scenario": FileKind(ScenarioFile, "`scenario.yaml` of a pack", "scenario-packs.md"),
    "personas": FileKind(PersonasFile, "`personas.yaml` of a pack", "scenario-packs.md"),
    "policy": FileKind(Policy, "a safeguard's policy", "safeguards.md"),
    "sweep": FileKind(Sweep, "a sweep of `hallulab bench`", "bench.md"),
    "rag-trust": FileKind(RagTrustConfig, "a file of `hallulab rag-trust`", "rag-trust.md"),
}
"""Name of a schema → the files that it describes."""

_TEXT_OR_KEYS: tuple[type[BaseModel], ...] = (Component, ScriptedMessage)
"""Models in whose place a file may have a text."""


class _FileSchema(GenerateJsonSchema):
    """Describes each field by the docstring below it, and allows the short forms that files may have."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a model."""
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


def render_schema(name: str) -> str:
    """Return the JSON Schema of a kind of files, one of `FILES`."""
    made = FILES[name].model.model_json_schema(schema_generator=_FileSchema)
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

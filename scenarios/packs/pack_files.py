"""Files of scenario packs: load them, write them, and start a new one.

docs/scenario-packs.md describes them.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from hallulab.scenarios.arguments import check_arguments
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_whole_folder
from hallulab.scenarios.files.data_files import expand_home, is_folder, is_there
from hallulab.scenarios.files.opening import read_file
from hallulab.scenarios.files.yaml_text import YamlText, dump_yaml, read_yaml
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.documents import ANYWHERE, Boundary, copy_documents, read_documents, read_folder
from hallulab.scenarios.packs.goals import join_labels
from hallulab.scenarios.packs.labels import SCHEMA, DocumentDefaults
from hallulab.scenarios.packs.pack import (
    Document,
    Identifier,
    Language,
    Persona,
    Scenario,
    Specialist,
    TopicThreshold,
)
from hallulab.scenarios.text.wording import render_one_line
from hallulab.scenarios.transcript import Frozen

SCENARIO_FILE = "scenario.yaml"

_BUILT_IN = Path(__file__).parent

Text = Annotated[str, Field(min_length=1)]

DEFAULT_SPECIALISTS = (
    Specialist(
        name="guide",
        title="Guide",
        duty="finds out what the person needs and explains procedures, offices, deadlines and costs",
    ),
    Specialist(
        name="expert",
        title="Subject expert",
        duty="explains what the rules say and how they apply to the person's situation",
    ),
    Specialist(
        name="drafter",
        title="Drafter",
        duty="drafts letters, messages, complaints and lists from the person's facts",
    ),
)
"""Role agents of a pack that names none, modelled on paralegal, lawyer and drafter (HalluDetect A.1.5)."""


class ScenarioFile(Frozen):
    """The content of `scenario.yaml`."""

    schema_number: Literal[1] = Field(alias="schema")
    name: Identifier
    title: Text
    description: Text
    domain: Text
    assistant: Text
    language: Language | None = None
    licence: Text | None = None
    functions: tuple[Text, ...] = ()
    specialists: tuple[Specialist, ...] = Field(default=DEFAULT_SPECIALISTS, min_length=1, max_length=26)
    """See `Scenario.specialists`; a receptionist can route to 26 at most."""
    identity_thresholds: dict[str, TopicThreshold] = Field(default_factory=dict)
    documents: Text
    """Folder of the documents, relative to the file."""
    document_defaults: DocumentDefaults = DocumentDefaults()
    """Labels of documents without their own."""
    personas: Text
    """File of the personas, relative to the file."""


class PersonasFile(Frozen):
    """The content of `personas.yaml`."""

    personas: tuple[Persona, ...] = Field(min_length=1)


def list_built_in_packs() -> list[str]:
    """Return the names of the packs that come with hallulab."""
    return sorted(path.parent.name for path in _BUILT_IN.glob(f"*/{SCENARIO_FILE}"))


def locate_pack(name_or_path: str, folder: Path | None = None) -> str:
    """Return the name of a built-in pack, or the absolute path of another, which any folder can use.

    Args:
        name_or_path: as for `load_scenario`.
        folder: looked in first for a relative path; then the working directory.
    """
    if name_or_path in list_built_in_packs():
        return name_or_path
    path = expand_home(name_or_path)
    beside = folder / path if folder is not None else path
    found = beside if is_there(beside) else path
    return str(found.absolute()) if is_there(found) else name_or_path


@check_arguments
def load_scenario(name_or_path: str | Path) -> Scenario:
    """Load a pack.

    Args:
        name_or_path: name of a built-in pack, or path of a pack's folder or of its YAML file.

    Raises:
        UsageError: there is no such pack, or something in it is wrong; names file, line and remedy.
    """
    pack = _read_pack(name_or_path)
    file, yaml_text = pack.file, pack.yaml_text
    folder = pack.path.parent / file.documents
    if not is_folder(folder):
        raise yaml_text.error(["documents"], f"there is no folder {folder}. Create it or correct the path.")
    documents = read_documents(folder, file.document_defaults, pack.boundary, strict=True)
    for topic in file.identity_thresholds:
        if topic not in {document.topic for document in documents}:
            raise yaml_text.error(
                ["identity_thresholds", topic],
                "no document has this topic, so the threshold would never apply. Correct or remove it.",
            )
    return _build_scenario(pack, documents)


def load_without_documents(name_or_path: str | Path) -> Scenario:
    """Load a pack as if it had no documents: none is opened. See `load_scenario`."""
    return _build_scenario(_read_pack(name_or_path), documents=())


class _Pack(NamedTuple):
    """A pack of which only the main file is read."""

    path: Path
    yaml_text: YamlText
    file: ScenarioFile
    boundary: Boundary


def _read_pack(name_or_path: str | Path) -> _Pack:
    path, boundary = _locate_scenario_file(name_or_path)
    boundary.require_file(path)
    yaml_text = read_yaml(path, SCHEMA)
    if yaml_text.data.get("schema", 1) != 1:
        raise yaml_text.error(
            ["schema"],
            f"version {yaml_text.data['schema']} is unknown; this hallulab reads version 1. "
            "Write `schema: 1`, or update hallulab.",
        )
    file = yaml_text.check(ScenarioFile)
    repeated = _find_repeated([specialist.name for specialist in file.specialists])
    if repeated is not None:
        raise yaml_text.error(
            ["specialists", repeated, "name"],
            f"another specialist is called {file.specialists[repeated].name} too. Rename one.",
        )
    return _Pack(path, yaml_text, file, boundary)


def _locate_scenario_file(name_or_path: str | Path) -> tuple[Path, Boundary]:
    names = list_built_in_packs()
    if str(name_or_path) in names:
        return _BUILT_IN / str(name_or_path) / SCENARIO_FILE, ANYWHERE
    path = expand_home(name_or_path)
    if is_folder(path):
        path = path / SCENARIO_FILE
        if not is_there(path):
            raise UsageError(
                f"{path}: there is no such file, so the folder is no scenario pack. "
                "`hallulab init pack DIR` writes one to start from."
            )
    if not is_there(path):
        raise UsageError(
            f"{name_or_path}: no such scenario pack{suggest_name(str(name_or_path), names)}. Give the folder "
            f"or YAML file of a pack, or one of: {', '.join(names)}."
        )
    return path, Boundary(path.parent)


def _build_scenario(pack: _Pack, documents: Sequence[Document]) -> Scenario:
    file = pack.file
    path = pack.path.parent / file.personas
    if not is_there(path):
        raise pack.yaml_text.error(["personas"], f"there is no file {path}. Create it or correct the path.")
    pack.boundary.require_file(path)
    yaml_text = read_yaml(path, SCHEMA)
    personas = yaml_text.check(PersonasFile).personas
    repeated = _find_repeated([persona.id for persona in personas])
    if repeated is not None:
        raise yaml_text.error(
            ["personas", repeated, "id"],
            f"another persona is called {personas[repeated].id} too. Rename one.",
        )
    if documents:
        _check_labels(yaml_text, personas, {document.name: document.text for document in documents})
    shared = file.model_dump(exclude={"schema_number", "documents", "document_defaults", "personas"})
    return Scenario(**shared, documents=tuple(documents), personas=personas)


def _check_labels(yaml_text: YamlText, personas: Sequence[Persona], texts: Mapping[str, str]) -> None:
    """Check that labels name documents of the pack and quote them.

    Raises:
        UsageError: one does not; names file, persona and field.
    """
    for number, persona in enumerate(personas):
        for place, label in enumerate(persona.labels):
            if label is None:
                continue
            where: tuple[int | str, ...] = ("personas", number, "goals", place)
            for at, name in enumerate(label.documents):
                if name not in texts:
                    raise yaml_text.error(
                        [*where, "documents", at],
                        f"persona {persona.id}: there is no document {name}{suggest_name(name, texts)}. "
                        "Give the path of a file in the folder of the documents, without its suffix.",
                    )
            text = " ".join(" ".join(texts[name] for name in label.documents).split())
            for at, words in enumerate(label.says):
                if words not in text:
                    raise yaml_text.error(
                        [*where, "says", at],
                        f"persona {persona.id}: none of the documents named has these words. Copy a few that "
                        "another wording of them contradicts.",
                    )


def _find_repeated(names: Sequence[str]) -> int | None:
    """Return the index of the first name that occurred before, or None."""
    seen: Counter[str] = Counter()
    for index, name in enumerate(names):
        if seen[name]:
            return index
        seen[name] += 1
    return None


def name_pack(folder: Path) -> str:
    """Return the identifier of a pack that is written into a folder: the folder's name, as far as it fits.

    >>> name_pack(Path("My packs/Town library"))
    'town-library'
    """
    return re.sub(r"[^a-z0-9]+", "-", folder.absolute().name.lower()).strip("-") or "my-pack"


def render_scenario_file(name: str, about: Mapping[str, Any], how: str, language: str | None = None) -> str:
    """Return a `scenario.yaml`.

    Args:
        about: title, domain, assistant, functions and specialists. A drafter is added, who writes letters.
        how: by what the pack was made, for a comment.
        language: the language that its personas write; None: English.
    """
    drafter = DEFAULT_SPECIALISTS[-1]
    specialists = [one for one in about["specialists"] if one["name"] != drafter.name]
    unique = list({one["name"]: one for one in specialists}.values())
    values = {
        "schema": 1,
        "name": name,
        "title": render_one_line(about["title"]),
        "description": f"People ask about {render_one_line(about['domain'])}.",
        **({"language": language} if language else {}),
        "domain": render_one_line(about["domain"]),
        "assistant": render_one_line(about["assistant"]),
        "functions": [render_one_line(line) for line in about["functions"]],
        "specialists": [
            {key: render_one_line(one[key]) for key in ("name", "title", "duty")} for one in unique
        ]
        + [drafter.model_dump()],
        "documents": "documents",
        "personas": "personas.yaml",
    }
    return f"# Written {render_one_line(how)}: read and correct it.\n{dump_yaml(values)}"


def render_persona_block(persona: Persona, notes: Sequence[str], goals: Sequence[str]) -> str:
    """Return an entry of `personas.yaml` under comments: notes, then one on each goal."""
    values = {key: value for key, value in persona.described().items() if value is not None}
    values["goals"] = join_labels(persona.goals, persona.labels)
    lines = [*notes, *(f"goal {number}: {said}" for number, said in enumerate(goals, start=1))]
    return textwrap.indent(
        "".join(f"# {render_one_line(line)}\n" for line in lines) + dump_yaml([values]), "  "
    )


def render_personas_file(blocks: Sequence[str], how: str) -> str:
    """Return a `personas.yaml` of blocks by `render_persona_block`."""
    written = f"# Written {render_one_line(how)}: read and correct them."
    head = f"{written} docs/scenario-packs.md describes the keys.\n"
    return head + "personas:\n" + "\n".join(blocks)


_TEMPLATE = Path(__file__).parent / "templates" / "skeleton"


def init_scenario(directory: Path) -> None:
    """Write a small working pack (comments on every key, two documents, two personas) into `directory`.

    Raises:
        UsageError: the folder is not empty.
        OperationalError: it cannot be written.
    """
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError(f"{directory}: this is no empty folder. Name a new one.")
    except OSError as error:
        raise OperationalError(f"cannot write {directory}: {error.strerror}.") from error
    with write_whole_folder(directory) as beside:
        for source in sorted(path for path in _TEMPLATE.rglob("*") if path.is_file()):
            target = beside / source.relative_to(_TEMPLATE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read_file(source))


def write_part(name_or_path: str | Path, part: Scenario, folder: Path) -> None:
    """Write a part of a pack as a pack of its own: some of its documents and personas, under another name.

    The files of the documents are copied as they are.

    Args:
        name_or_path: the whole pack, as for `load_scenario`.
        folder: a new or empty folder.

    Raises:
        UsageError: the folder is not empty, or a document cannot be copied under its own name.
        OperationalError: it cannot be written.
    """
    pack = _read_pack(name_or_path)
    documents = pack.path.parent / pack.file.documents
    names = {document.name for document in part.documents}
    found = read_folder(documents, pack.file.document_defaults, pack.boundary, strict=True)
    values = {
        "schema": 1,
        **part.model_dump(mode="json", exclude={"documents", "personas"}, exclude_none=True),
        "documents": "documents",
        "document_defaults": pack.file.document_defaults.model_dump(exclude_none=True),
        "personas": "personas.yaml",
    }
    blocks = [render_persona_block(persona, (), ()) for persona in part.personas]
    with write_whole_folder(folder) as beside:
        copy_documents(
            (path for path, document in found.files.items() if document.name in names),
            documents,
            beside / "documents",
        )
        (beside / SCENARIO_FILE).write_text(dump_yaml(values), encoding="utf-8")
        (beside / "personas.yaml").write_text("personas:\n" + "\n".join(blocks), encoding="utf-8")
        if load_scenario(beside) != part:
            raise UsageError(
                f"{documents}: two documents differ only in their suffix, so that a part of the pack would "
                "call them otherwise. Rename one."
            )

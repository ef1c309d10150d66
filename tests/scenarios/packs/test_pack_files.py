from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios.packs.documents import KINDS
from hallulab.scenarios.packs.pack_files import (
    DEFAULT_SPECIALISTS,
    init_scenario,
    list_built_in_packs,
    load_scenario,
)
from hallulab.testing.tiny_pack import FILES, make_pack
from tests.kit.refusals import refusal
from tests.scenarios.packs.pdf_files import write_pages

SCENARIO = FILES["scenario.yaml"]
PERSONAS = """\
personas:
  - id: ann
    name: Ann
    grievance: Her tea is cold.
    goals:
      - Warm tea
    manner: Brief.
    summary: She asked for warm tea.
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    folder = make_pack(tmp_path / "pack")
    (folder / "personas.yaml").write_text(PERSONAS)
    (folder / "documents" / "kettle.md").write_text("# The kettle\n\nWater boils at 100 degrees.\n")
    return folder


def refused(path: Path) -> str:
    return refusal(load_scenario, path)


def test_a_pack_loads_from_its_folder_and_from_its_file(pack: Path) -> None:
    loaded = load_scenario(pack)
    assert loaded == load_scenario(str(pack / "scenario.yaml"))
    assert (loaded.name, loaded.domain, loaded.specialists) == ("tiny", "tea", DEFAULT_SPECIALISTS)
    assert loaded.personas[0].goals == ("Warm tea",)


def test_the_first_heading_is_the_title_and_leaves_the_text(pack: Path) -> None:
    (document,) = load_scenario(pack).documents
    assert (document.name, document.title, document.source) == ("kettle", "The kettle", "kettle.md")
    assert document.text == "Water boils at 100 degrees."


def test_front_matter_wins_over_the_defaults(pack: Path) -> None:
    (pack / "scenario.yaml").write_text(
        SCENARIO + "document_defaults:\n  source: Folklore\n  topic: heat\n  sector: kitchen\n"
    )
    (pack / "documents" / "leaf.txt").write_text(
        "---\ntitle: The leaf\nsource: Botany\n---\n\n# Not a heading here\n"
    )
    kettle, leaf = load_scenario(pack).documents
    assert (kettle.source, kettle.topic, kettle.sector) == ("Folklore", "heat", "kitchen")
    assert (leaf.title, leaf.source, leaf.topic) == ("The leaf", "Botany", "heat")
    assert leaf.text == "# Not a heading here"


def test_documents_of_inner_folders_are_read_and_hidden_files_are_not(pack: Path) -> None:
    (pack / "documents" / "green").mkdir()
    (pack / "documents" / "green" / "kettle.txt").write_text("Cooler water.")
    (pack / "documents" / ".DS_Store").write_bytes(b"\xff")
    assert [document.name for document in load_scenario(pack).documents] == ["green/kettle", "kettle"]


def test_windows_line_ends_and_byte_order_marks_are_no_trouble(pack: Path) -> None:
    (pack / "documents" / "kettle.md").write_bytes(
        b"\xef\xbb\xbf---\r\ntitle: K\r\n---\r\nOne.\r\n\r\nTwo.\r\n"
    )
    (document,) = load_scenario(pack).documents
    assert (document.title, document.text) == ("K", "One.\n\nTwo.")


def test_a_pdf_is_read(pack: Path) -> None:
    (pack / "documents" / "oolong.pdf").write_bytes(write_pages([(20, 200, "Oolong is half fermented.")]))
    document = load_scenario(pack).documents[1]
    assert (document.title, document.source) == ("oolong", "oolong.pdf")
    assert document.text == "Oolong is half fermented."


def test_an_unknown_pack_names_the_built_in_ones() -> None:
    assert refused(Path("no-such-pack")) == (
        "no-such-pack: no such scenario pack. Give the folder or YAML file of a pack, or one of: "
        "banking-knowledge, consumer-grievance-india, migration-labour-rights, nagar-seva, "
        "pregnancy-medication."
    )


def test_a_folder_without_scenario_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == (
        "scenario.yaml: there is no such file, so the folder is no scenario pack. "
        "`hallulab init pack DIR` writes one to start from."
    )


def test_what_the_scenario_names_must_be_there(pack: Path) -> None:
    (pack / "documents" / "kettle.md").unlink()
    assert refused(pack) == f"documents: no documents in it. Put {KINDS} files there."
    (pack / "documents").rmdir()
    remedy = "Create it or correct the path."
    assert refused(pack) == f"scenario.yaml, line 7: documents: there is no folder documents. {remedy}"
    make_pack(pack)
    (pack / "personas.yaml").unlink()
    assert refused(pack) == f"scenario.yaml, line 8: personas: there is no file personas.yaml. {remedy}"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "schema: 1",
            "schema: 2",
            "line 1: schema: version 2 is unknown; this hallulab reads version 1. "
            "Write `schema: 1`, or update hallulab.",
        ),
        ("schema: 1\n", "", "line 1: schema: this key is missing. Add it; see docs/scenario-packs.md."),
        (
            "title: Tiny",
            "titel: Tiny",
            "line 3: titel: unknown key (did you mean `title`?). "
            "Correct its spelling or remove it; see docs/scenario-packs.md.",
        ),
        (
            "title: Tiny",
            "title: Tiny\ncolour: green",
            "line 4: colour: unknown key. Correct its spelling or remove it; see docs/scenario-packs.md.",
        ),
        ("title: Tiny", "title: 7", "line 3: title: must be text, not the int 7. Put it in quotes."),
        ("title: Tiny", "title:", "line 3: title: is empty. Give a text."),
        (
            "title: Tiny",
            "title: Tiny\nfunctions:\n  - Brew: slowly",
            "line 5: functions.0: must be text, not a mapping (a colon followed by a space makes one). "
            "Put it in quotes.",
        ),
        (
            "title: Tiny",
            "title: Tiny\nfunctions: brew",
            'line 4: functions: must be a list, such as ["brew"]. Correct it; see docs/scenario-packs.md.',
        ),
        (
            "name: tiny",
            "name: ../tiny",
            "line 2: name: may hold only small letters (a to z), digits and `-`, and begins with a letter or "
            "digit. Correct it; see docs/scenario-packs.md.",
        ),
        (
            "title: Tiny",
            "title: Tiny\nidentity_thresholds:\n  heat: 0.3",
            "line 5: identity_thresholds.heat: no document has this topic, "
            "so the threshold would never apply. Correct or remove it.",
        ),
        (SCENARIO, "", "line 1: schema: this key is missing. Add it; see docs/scenario-packs.md."),
        *(
            (
                SCENARIO,
                text,
                "line 1: a list of `key: value` lines is expected here; see docs/scenario-packs.md.",
            )
            for text in ("- a\n- b\n", "just text\n")
        ),
        *(
            (
                "title: Tiny",
                f"title: Tiny\nidentity_thresholds:\n  heat: {threshold}",
                "line 5: identity_thresholds.heat: must be a number from 0 to 1, or one for each reading, "
                "such as {word: 0.3, probability: 0.49}. Correct it; see docs/scenario-packs.md.",
            )
            for threshold in ("3", "{word: 0.3}")
        ),
        (
            "title: Tiny",
            "title: Tiny\nspecialists:\n" + "  - {name: cook, title: Cook, duty: cooks}\n" * 2,
            "line 6: specialists.1.name: another specialist is called cook too. Rename one.",
        ),
        (
            "title: Tiny",
            "title: Tiny\ntitle: Huge",
            "line 4: not valid YAML (the key title occurs twice). Correct it.",
        ),
        (
            "title: Tiny",
            "title: [Tiny",
            "line 4: not valid YAML (did not find expected ',' or ']'). Correct it.",
        ),
        (
            "title: Tiny",
            "title: !!python/object/apply:os.getcwd []",
            "line 3: not valid YAML (could not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object/apply:os.getcwd'). Correct it.",
        ),
    ],
)
def test_a_wrong_scenario_file_is_refused(pack: Path, old: str, new: str, complaint: str) -> None:
    (pack / "scenario.yaml").write_text(SCENARIO.replace(old, new))
    assert refused(pack) == f"scenario.yaml, {complaint}"


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (
            "    name: Ann\n",
            "",
            "line 2: personas.0.name: this key is missing. Add it; see docs/scenario-packs.md.",
        ),
        (
            "id: ann",
            "id: Ann B",
            "line 2: personas.0.id: may hold only small letters (a to z), digits and `-`, and begins with a "
            "letter or digit. Correct it; see docs/scenario-packs.md.",
        ),
        (
            "    manner",
            "    facts:\n      - 7\n    manner",
            "line 8: personas.0.facts.0: must be text, not the int 7. Put it in quotes.",
        ),
        (
            PERSONAS,
            PERSONAS + PERSONAS.partition("\n")[2],
            "line 9: personas.1.id: another persona is called ann too. Rename one.",
        ),
    ],
)
def test_a_wrong_persona_is_refused(pack: Path, old: str, new: str, complaint: str) -> None:
    (pack / "personas.yaml").write_text(PERSONAS.replace(old, new))
    assert refused(pack) == f"personas.yaml, {complaint}"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"# Only a title\n", ": the document holds no text. Write some, or remove it."),
        (
            b"---\ntitle: K\ntext without end",
            ", line 1: the front matter that begins here has no end. Close it with a line `---`, "
            "or put an empty line before it.",
        ),
        (
            b"---\ntitle: K: L\n---\nText.",
            ", line 2: not valid YAML (mapping values are not allowed in this context). Correct it.",
        ),
    ],
)
def test_a_wrong_document_is_refused(pack: Path, content: bytes, complaint: str) -> None:
    path = pack / "documents" / "kettle.md"
    path.write_bytes(content)
    assert refused(pack) == f"documents/{path.name}{complaint}"


def test_the_skeleton_loads_at_once(tmp_path: Path) -> None:
    init_scenario(tmp_path / "new" / "pack")
    loaded = load_scenario(tmp_path / "new" / "pack")
    assert (len(loaded.documents), len(loaded.personas)) == (2, 2)


def test_the_skeleton_goes_into_an_empty_folder_only(tmp_path: Path) -> None:
    init_scenario(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert refusal(init_scenario, tmp_path) == f"{tmp_path}: this is no empty folder. Name a new one."
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


MINIMUM = {
    "banking-knowledge": (61, 5, 28),
    "consumer-grievance-india": (40, 20, 120),
    "migration-labour-rights": (15, 1, 8),
    "nagar-seva": (12, 1, 12),
    "pregnancy-medication": (15, 1, 8),
}
"""Documents, sectors of documents, personas."""


def test_the_built_in_packs_are_these() -> None:
    assert list_built_in_packs() == sorted(MINIMUM)


@pytest.mark.parametrize("name", MINIMUM)
def test_a_built_in_pack_is_rich_enough(name: str) -> None:
    loaded = load_scenario(name)
    documents, sectors, personas = MINIMUM[name]
    assert loaded.name == name
    assert len(loaded.documents) >= documents
    assert len({document.sector for document in loaded.documents} - {None}) >= sectors
    assert len(loaded.personas) >= personas


@pytest.mark.parametrize("name", MINIMUM)
def test_every_document_of_a_built_in_pack_has_source_and_topic(name: str) -> None:
    without = [
        document.name
        for document in load_scenario(name).documents
        if not document.topic or document.source.startswith(document.name)
    ]
    assert without == []

"""A pack is read from its own folder, and from files only."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.testing.tiny_pack import FILES, make_pack
from tests.kit.refusals import refusal

COPY = "Copy what the pack needs into that folder; nothing else is read."


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return make_pack(tmp_path / "pack")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the user's, beside the pack."""
    path = tmp_path / "secret.txt"
    path.write_text("My diary.")
    return path


def refused(path: Path) -> str:
    return refusal(load_scenario, str(path))


def test_a_document_that_leads_out_of_the_pack_is_refused(pack: Path, secret: Path) -> None:
    link = pack / "documents" / "x.txt"
    link.symlink_to(Path("..") / ".." / "secret.txt")
    assert refused(pack) == f"{link}: leads to {secret}, outside of the pack's folder {pack}. {COPY}"


@pytest.mark.parametrize("name", ["scenario.yaml", "personas.yaml"])
def test_a_file_of_the_pack_that_leads_out_of_it_is_refused(pack: Path, tmp_path: Path, name: str) -> None:
    outside = (pack / name).rename(tmp_path / name)
    (pack / name).symlink_to(outside)
    told = f"{pack / name}: leads to {outside}, outside of the pack's folder {pack}. {COPY}"
    assert refused(pack) == told
    assert refused(pack / "scenario.yaml") == told


def test_a_link_through_other_links_is_followed_to_its_end(pack: Path, secret: Path) -> None:
    (pack / "documents" / "x.txt").symlink_to(pack / "y")
    (pack / "y").symlink_to(secret)
    assert f"leads to {secret}, outside of" in refused(pack)


def test_a_folder_of_documents_that_leads_out_of_the_pack_is_refused(pack: Path, tmp_path: Path) -> None:
    outside = (pack / "documents").rename(tmp_path / "notes")
    (pack / "documents").symlink_to(outside)
    assert refused(pack) == (
        f"{pack}/documents: leads to {outside}, outside of the pack's folder {pack}. {COPY}"
    )


@pytest.mark.parametrize("where", ["{outside}", "../notes"])
def test_a_folder_outside_of_the_pack_is_refused(pack: Path, tmp_path: Path, where: str) -> None:
    outside = (pack / "documents").rename(tmp_path / "notes")
    named = where.format(outside=outside)
    text = FILES["scenario.yaml"].replace("documents: documents", f"documents: {named}")
    (pack / "scenario.yaml").write_text(text)
    assert refused(pack) == (
        f"{pack / named}: leads to {outside}, outside of the pack's folder {pack}. {COPY}"
    )


def test_a_file_of_personas_outside_of_the_pack_is_refused(pack: Path, tmp_path: Path) -> None:
    outside = (pack / "personas.yaml").rename(tmp_path / "people.yaml")
    text = FILES["scenario.yaml"].replace("personas: personas.yaml", f"personas: {outside}")
    (pack / "scenario.yaml").write_text(text)
    assert refused(pack) == f"{outside}: leads to {outside}, outside of the pack's folder {pack}. {COPY}"


def test_links_that_stay_in_the_pack_are_followed(pack: Path) -> None:
    (pack / "documents").rename(pack / "english")
    (pack / "documents").symlink_to("english")
    (pack / "english" / "pot.txt").symlink_to("kettle.md")
    assert [document.name for document in load_scenario(pack).documents] == ["kettle", "pot"]


def test_the_packs_folder_may_itself_be_a_link(pack: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(pack)
    assert load_scenario(tmp_path / "link").name == "tiny"


def test_a_link_to_a_folder_is_not_passed_over_in_silence(pack: Path) -> None:
    link = pack / "documents" / "more"
    link.symlink_to(pack / "documents")
    assert refused(pack) == f"{link}: links to folders are not followed. Put the folder itself there."


@pytest.mark.parametrize(
    ("target", "reason"),
    [("nothing.txt", "No such file or directory"), ("x.txt", "Too many levels of symbolic links")],
)
def test_a_link_to_nothing_or_to_itself_is_refused(pack: Path, target: str, reason: str) -> None:
    link = pack / "documents" / "x.txt"
    link.symlink_to(target)
    assert refused(pack) == f"{link}: cannot be read ({reason}). Correct or remove it."


def put_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(path))


@pytest.mark.parametrize(
    ("put", "name", "kind"),
    [
        *(
            (os.mkfifo, name, "pipe")
            for name in ("documents/x.txt", "documents/x.pdf", "personas.yaml", "scenario.yaml")
        ),
        (put_socket, "documents/x.txt", "socket"),
        (Path.mkdir, "personas.yaml", "folder"),
    ],
)
def test_what_is_no_file_is_refused_and_not_waited_for(
    pack: Path, put: Callable[[Path], None], name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pack)  # addresses of sockets are short
    (pack / name).unlink(missing_ok=True)
    put(pack / name)
    assert refused(pack) == f"{pack / name}: is a {kind}, no file. Put a file there, or remove it."


def test_a_document_whose_name_is_no_text_is_refused(pack: Path) -> None:
    path = pack / "documents" / os.fsdecode(b"tea\xff.txt")
    path.write_text("Tea.")
    assert refused(pack) == f"{path}: the name of the file is not UTF-8. Rename it."


@pytest.mark.parametrize("name", [".hidden", ".hidden.txt"])
def test_what_is_hidden_stays_unread(pack: Path, secret: Path, name: str) -> None:
    (pack / "documents" / name).symlink_to(secret)
    assert len(load_scenario(pack).documents) == 1


def test_a_document_larger_than_is_taken_is_refused(pack: Path) -> None:
    path = pack / "documents" / "kettle.md"
    with path.open("wb") as file:
        file.truncate(10**11)  # takes no room
    assert refused(pack) == f"{path}: has more than 50,000,000 bytes. Split it, or name another file."

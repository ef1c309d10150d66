"""Tell a run folder from another one by the names of its files, before anything heavy is imported."""

from __future__ import annotations

from pathlib import Path

from hallulab.scenarios.errors import UsageError

CONVERSATIONS = "conversations.jsonl"
SHARDS = 16
"""Journals of each kind of a run that is written in shards."""


def list_shards(journal: Path) -> list[Path]:
    """Return the paths of all shards of a journal, which need not exist.

    >>> list_shards(Path("verdicts.jsonl"))[9].name
    'verdicts-09.jsonl'
    """
    return [journal.with_name(f"{journal.stem}-{number:02d}{journal.suffix}") for number in range(SHARDS)]


def is_in_shards(folder: Path) -> bool:
    """Return True if the journals of a folder are in shards.

    Raises:
        UsageError: there is also a journal in one file.
    """
    journal = folder / CONVERSATIONS
    found = [file for file in list_shards(journal) if file.is_file()]
    if found and journal.is_file():
        raise UsageError(
            f"{folder} has {journal.name} and {found[0].name}: journals are in one file or in shards. Move "
            "those that are not of this run to another folder."
        )
    return bool(found)


def has_journal(folder: Path) -> bool:
    """Return True if a folder has a journal of conversations, in one file or in shards.

    Raises:
        UsageError: it has both.
    """
    return is_in_shards(folder) or (folder / CONVERSATIONS).is_file()


def require_run(folder: Path) -> None:
    """Check that a folder has a journal of conversations.

    Raises:
        UsageError: it has none, or one in a file and one in shards.
    """
    if has_journal(folder):
        return
    if folder.is_dir():
        inside = sorted(path.parent for path in folder.glob(f"*/{CONVERSATIONS}"))
        remedy = (
            f"Give one in it, such as {inside[0]}" if inside else "Make one with `hallulab run --out DIR`"
        )
        raise UsageError(f"{folder} is no run folder: it has no {CONVERSATIONS}. {remedy}.")
    if folder.is_file():
        of_run = has_journal(folder.parent)
        remedy = f"Give the folder {folder.parent}" if of_run else f"Judge chats by `hallulab judge {folder}`"
        raise UsageError(f"{folder} is no run folder: it is a file. {remedy}.")
    near = ""
    if beside := [path.parent.name for path in folder.parent.glob(f"*/{CONVERSATIONS}")]:
        from hallulab.scenarios.near_names import suggest_name

        near = suggest_name(folder.name, beside)
    raise UsageError(
        f"{folder} is no run folder: it is not there{near}. Make one with `hallulab run --out {folder}`."
    )

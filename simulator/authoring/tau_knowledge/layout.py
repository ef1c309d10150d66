"""Read the files of tau2-bench's domain `banking_knowledge`: documents and customers, as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import check_record, is_folder, read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.packs.documents import Boundary, list_entries

DOMAIN = Path("data/tau2/domains/banking_knowledge")
"""The folder of the domain in a checkout of tau2-bench."""
LICENCE = "LICENSE"
LARGEST = 2_000_000
"""Bytes of a file at most; the largest one has 12,000."""
SCHEMA = "the README of tau2-bench"

_NUMBER = re.compile(r"[0-9]+")
_SECTORS = (
    "business-checking-accounts",
    "business-credit-cards",
    "business-savings-accounts",
    "buy-now-pay-later",
    "bank-accounts",
    "checking-accounts",
    "credit-cards",
    "customer-support",
    "everyone-pay",
    "personal-subscriptions",
    "savings-accounts",
)
"""With what the identifiers of documents begin."""


class _SourceRecord(BaseModel):
    """A record of which only some keys are read."""

    model_config = ConfigDict(frozen=True, extra="ignore")


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SourceDocument(_SourceRecord):
    """A document of the knowledge base."""

    id: str = Field(min_length=1)
    title: Text
    content: Text

    @property
    def name(self) -> str:
        """The name in a pack: small letters, digits and hyphens."""
        return make_slug(self.id.removeprefix("doc_"))

    @property
    def topic(self) -> str:
        """The product or subject: the name without its number."""
        return re.sub(r"-[0-9]+$", "", self.name)

    @property
    def sector(self) -> str:
        """The kind of product."""
        return next((one for one in _SECTORS if self.name.startswith(one)), self.topic)


class _UserScenario(_SourceRecord):
    instructions: str = Field(min_length=1)


class SourceUser(_SourceRecord):
    """A task: a customer, and the documents that an agent needs for the customer's matter."""

    id: str = Field(min_length=1)
    user_scenario: _UserScenario
    required_documents: tuple[str, ...] = Field(min_length=1)
    """Identifiers of documents."""


class KnowledgeSource(NamedTuple):
    """Content of a checkout."""

    documents: dict[str, SourceDocument]
    """By identifier, in its order."""
    users: tuple[SourceUser, ...]
    """By identifier."""
    licence: str
    """The text of the licence, with its notice."""


_RecordType = TypeVar("_RecordType", bound=_SourceRecord)


def make_slug(text: str) -> str:
    """Return a text as small letters, digits and single hyphens, fit for names of files.

    >>> make_slug("../Bank_accounts_(general)_042")
    'bank-accounts-general-042'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def read_source(folder: Path) -> KnowledgeSource:
    """Read a checkout of tau2-bench.

    Raises:
        UsageError: the folder is no checkout, or a file in it is wrong; names the file.
    """
    boundary = Boundary(folder)
    domain = folder / DOMAIN
    for part in ("documents", "tasks"):
        if not is_folder(domain / part):
            raise UsageError(
                f"{folder}: has no folder {DOMAIN / part}, so it is no checkout of tau2-bench with "
                "banking_knowledge. Name the folder of a whole checkout."
            )
    licence = folder / LICENCE
    boundary.require_file(licence)
    documents = _read_rows(domain / "documents", SourceDocument, boundary)
    users = _read_rows(domain / "tasks", SourceUser, boundary)
    by_id = {one.id: one for _, one in documents}
    for path, user in users:
        unknown = sorted(set(user.required_documents) - set(by_id))
        if unknown:
            raise UsageError(
                f"{path}: required_documents: no document has the id {json.dumps(unknown[0])}. Correct it, "
                "or fetch the checkout again."
            )
    _require_different([(path, one.name) for path, one in documents])
    _require_different([(path, make_slug(one.id)) for path, one in users])
    return KnowledgeSource(
        dict(sorted(by_id.items())),
        tuple(sorted((one for _, one in users), key=_sort_key)),
        read_text(licence, LARGEST),
    )


def _read_rows(folder: Path, model: type[_RecordType], boundary: Boundary) -> list[tuple[Path, _RecordType]]:
    rows = []
    for path in list_entries(folder):
        if path.suffix != ".json":
            continue
        boundary.require_file(path)
        try:
            value = parse_json(read_text(path, LARGEST))
        except ValueError as error:
            raise UsageError(f"{path}: is no valid JSON ({error}). Fetch the file again.") from error
        rows.append((path, check_record(value, model, str(path), SCHEMA)))
    if not rows:
        raise UsageError(f"{folder}: has no .json files. Name the folder of a whole checkout.")
    return rows


def _require_different(named: Sequence[tuple[Path, str]]) -> None:
    seen: dict[str, Path] = {}
    for path, name in named:
        if not name:
            raise UsageError(f"{path}: id: has no letter and no digit of English. Give it another id.")
        if name in seen:
            raise UsageError(
                f"{path}: id: would be called {name}, as that of {seen[name]}. Give it another id."
            )
        seen[name] = path


def _sort_key(user: SourceUser) -> tuple[str, int]:
    number = _NUMBER.search(user.id)
    return _NUMBER.sub("", user.id), int(number[0][:18]) if number else 0

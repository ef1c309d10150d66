"""The file `experiment.json` of a run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import ConfigDict, Field, ValidationError, field_serializer, field_validator

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.agents.served_model import ClaimChecks
from hallulab.detectors.base.protocol import JudgingMethod
from hallulab.scenarios.attacks.attack import AttackRecord
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_text
from hallulab.scenarios.files.json_text import parse_json
from hallulab.scenarios.text.wording import format_count
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import describe


class ConversationHeader(Protocol):
    """Part of a conversation that says who made it."""

    @property
    def chatbot(self) -> str:
        """See `Conversation`."""
        ...

    @property
    def version(self) -> str:
        """See `Conversation`."""
        ...


class ComponentVersions(Frozen):
    """The versions of the user and the chatbots: `made_by` in `experiment.json`."""

    user: str
    """Version of the simulated user, its model and the rules of a conversation; of branched conversations the
    rules alone."""
    chatbots: dict[str, str]
    """Name in the experiment → version of the chatbot, its models and the search."""

    def made(self, conversation: ConversationHeader) -> bool:
        """Return whether they made a conversation."""
        chatbot = self.chatbots.get(conversation.chatbot)
        return chatbot is not None and conversation.version == self.version(conversation.chatbot)

    def joining(self, earlier: ComponentVersions | None) -> ComponentVersions:
        """Return these makers with the chatbots that took part earlier and do not now."""
        if earlier is None:
            return self
        return ComponentVersions(user=self.user, chatbots={**earlier.chatbots, **self.chatbots})

    def version(self, chatbot: str) -> str:
        """Return the `Conversation.version` of their conversations with a chatbot."""
        return f"{self.user}-{self.chatbots[chatbot]}"

    def describe_stale(self, conversations: Sequence[ConversationHeader]) -> list[str]:
        """Return a sentence for each chatbot with conversations of other makers, with what has changed."""
        sentences = []
        for name in sorted({conversation.chatbot for conversation in conversations}):
            stale = [one for one in conversations if one.chatbot == name and not self.made(one)]
            if not stale:
                continue
            users = {one.version.partition("-")[0] for one in stale}
            changed = (
                f"chatbot {name}" if users == {self.user} else "the simulated user or how conversations go"
            )
            if users == {""}:  # hallulab did not write versions yet
                changed = "hallulab"
            number, count = format_count(len(stale), "conversation"), "counts" if len(stale) == 1 else "count"
            sentences.append(
                f"{changed} has changed: {number} with {name} from before no longer {count}, and what is "
                "asked for is run again."
            )
        return sentences


class Sources(Frozen):
    """Prompt files and documents of a run's conversations: `sources` in `experiment.json`."""

    user: dict[str, str] = Field(default_factory=dict)
    """Prompt file of the simulated user → its version (`Prompt.version`)."""
    chatbots: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Chatbot → prompt file → its version; those of other people's chatbots are not known."""
    documents: dict[str, str] = Field(default_factory=dict)
    """Document of the pack, with what an attack put there → hash of it."""


class BranchedFrom(Frozen):
    """The run whose conversations are branched off from (docs/fixed-prefix.md)."""

    run: str
    """Its folder, as it was given."""
    chatbot: str
    """The chatbot whose conversations they are."""
    digest: str
    """Hash of these conversations."""


class Imported(Frozen):
    """The file that the conversations were imported from (docs/own-chats.md)."""

    file: str
    """It, as it was given."""
    format: str
    taken: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    """Field → the names in the file that were taken for it."""
    unread: tuple[str, ...] = ()
    """Names in the file that were not read."""
    notes: tuple[str, ...] = ()
    """Sentences about what was read."""
    skipped: tuple[str, ...] = ()
    """The wrong records that were left out: place and reason."""
    documents: str | None = None
    """Folder of the documents that evidence was searched in, as it was given; the run folder has a copy.
    None: there are none, or they are the scenario's."""


class HeldLive(Frozen):
    """Where a person typed the user's messages (docs/viewer.md)."""

    at: str
    """The command: `hallulab chat` or `hallulab view`."""


class Drawn(Frozen):
    """Whom a run has talked to that goes on until it is decided (docs/decide.md)."""

    personas: tuple[str, ...] = ()
    """Identifiers of those drawn, in their order."""
    of: int = 0
    """How many there are to be drawn."""
    seconds: tuple[float, ...] = ()
    """How long each batch took; none where the budget is not one of minutes."""


class SavedExperiment(Frozen):
    """The content of `experiment.json`. Fields that an older hallulab did not write have their defaults."""

    model_config = ConfigDict(extra="ignore")

    layout: Literal[1] = Field(default=1, alias="schema")
    experiment: Experiment
    """The experiment; unknown fields are not set."""
    identity: dict[str, Any]
    """Values that must not change while the folder grows."""
    seeds: tuple[int, ...] = ()
    """Seeds of the conversations."""
    detectors: dict[str, str]
    """Version of each detector by its name."""
    methods: dict[str, JudgingMethod] = Field(default_factory=dict)
    """How each detector judged, by its name; those of older runs are not known."""
    hallulab: str = ""
    packages: dict[str, str] = Field(default_factory=dict)
    """Versions of the packages that matter."""
    model_revision: str | None = None
    """Revision of the served model; None: not known."""
    claim_checks: ClaimChecks = ClaimChecks()
    """How chatbots and detectors check claims."""
    read_how: tuple[ReadHow, ...] = ()
    """How the models' answers were read."""
    endpoints: tuple[Answered, ...] = ()
    """Answers of each of several endpoints; empty: there was one."""
    made_by: ComponentVersions | None = None
    """Versions of the user and the chatbots that make the conversations; None: not known."""
    sources: Sources | None = None
    """The prompt files and documents that the conversations are made of; None: not known."""
    planted: AttackRecord | None = None
    """Record of the attack; None without one."""
    imported: Imported | None = None
    """Where the conversations were imported from; None: they were not."""
    live: HeldLive | None = None
    """Where a person typed the user's messages; None: nobody did."""
    branched_from: BranchedFrom | None = None
    """The run that the conversations branch off from; None: they begin at their beginning."""

    drawn: Drawn | None = None
    """Whom it has talked to; None: it does not go on until it is decided."""

    @property
    def lacks_simulated_user(self) -> bool:
        """True if no user was simulated here: the conversations were imported, or a person typed them."""
        return self.imported is not None or self.live is not None

    def adding_answers(self, answered: Sequence[Answered], read_how: Sequence[ReadHow]) -> SavedExperiment:
        """Return this with what endpoints answered just now, and how models were read."""
        known = {one.base_url: one for one in self.endpoints}
        for one in answered:
            before = known.get(one.base_url, Answered(base_url=one.base_url))
            counts = {"answered": before.answered + one.answered, "failed": before.failed + one.failed}
            known[one.base_url] = before.model_copy(update=counts)
        how = tuple(dict.fromkeys((*self.read_how, *read_how)))
        return self.model_copy(update={"endpoints": tuple(known.values()), "read_how": how})

    @field_validator("experiment")
    @classmethod
    def _says_what_was_run(cls, experiment: Experiment) -> Experiment:
        for field in ("scenario", "chatbots"):
            if field not in experiment.model_fields_set:
                raise ValueError(f"no `{field}`")
        return experiment

    @field_serializer("experiment")
    def _fields_that_are_set(self, experiment: Experiment) -> dict[str, Any]:
        return experiment.model_dump(mode="json", exclude_unset=True)

    def text(self) -> str:
        """Return the text of the file."""
        optional = ("made_by", "sources", "planted", "branched_from", "imported", "live", "drawn")
        unknown = {name for name in optional if getattr(self, name) is None}
        values = self.model_dump(mode="json", by_alias=True, exclude=unknown)
        return json.dumps(values, indent=2, sort_keys=True, allow_nan=False) + "\n"


def read_saved(path: Path) -> SavedExperiment | None:
    """Read `experiment.json`; None where there is none.

    Raises:
        UsageError: it is damaged, or hallulab did not write it.
    """
    if not path.exists():
        return None
    if not path.is_file():
        raise UsageError(f"{path}: this is no file. Restore it or use --fresh.")
    try:
        value = parse_json(read_text(path))
        if not isinstance(value, dict):
            raise UsageError(f"{path}: not an object. Restore it or use --fresh.")
        return SavedExperiment.model_validate(value)
    except ValidationError as error:
        flaw = describe(error)
    except ValueError as error:
        flaw = f"not valid JSON ({error})."
    raise UsageError(f"{path}: {flaw} Restore it or use --fresh.")

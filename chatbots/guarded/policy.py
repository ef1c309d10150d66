"""The policy of a guarded chatbot: what is done with a reply that its detector flags.

The paper names the hooks and two thresholds. Which words make a topic, the order of the ladder, and what
happens to a reply that could not be judged, are our choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, PlainValidator, ValidationError, field_validator, model_validator

from hallulab.scenarios.components import LeadsTo
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_there
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.files.yaml_text import read_yaml
from hallulab.scenarios.packs.pack import Reading, choose_threshold, read_threshold
from hallulab.scenarios.text.words import TOKEN
from hallulab.scenarios.transcript import Frozen, Judgement

SCHEMA = "docs/safeguards.md"

BUILT_IN = Path(__file__).parent / "policies"
"""Folder of the policies that come with hallulab."""

MOST_TOPICS = 20
"""The served model chooses a topic by one letter, and 20 tokens of its answer are known."""

Rung = Literal["highlight", "cite", "regenerate", "abstain", "human"]
RUNGS: tuple[Rung, ...] = ("highlight", "cite", "regenerate", "abstain", "human")
"""The rungs of the ladder, in the only order that they can have."""


def _threshold(value: object) -> object:
    if value == "detector":
        return value
    return read_threshold(
        value, allowed="one for each reading, such as {word: 0.3, probability: 0.49}, or `detector`"
    )


Threshold = Annotated[float | Mapping[Reading, float] | Literal["detector"], PlainValidator(_threshold)]
"""A score from which a reply is flagged, or one for each reading of the guard's detector, or `detector`: the
detector's own decision."""


def resolve_threshold(given: Threshold, reading: Reading) -> float | Literal["detector"]:
    """Return the threshold for scores that are made so."""
    return given if isinstance(given, str) else choose_threshold(given, reading)


PLACEHOLDER = "{topics}"
"""Stands for the topics in what the user is told."""


class Topic(Frozen):
    """A topic, and how strict it is."""

    sensitive: bool = False
    """True if the stricter threshold and the longer ladder apply."""
    words: tuple[str, ...] = ()
    """Words and phrases that tag question, query and passages, in any inflection."""
    about: str = ""
    """Its description, for the model that tags; empty: its name."""
    threshold: Threshold | None = None
    """The threshold of this topic, in place of all others; None: the strictest of the general one, the
    sensitive one and the scenario's."""


_GENERAL: Mapping[Reading, float] = {"word": 0.5, "probability": 0.55}
_SENSITIVE: Mapping[Reading, float] = {"word": 0.3, "probability": 0.49}


class PolicyThresholds(Frozen):
    """Scores from which a reply is flagged, H ≥ τ (MetaRAG section 3.6)."""

    general: Threshold = _GENERAL
    """τ_general: the paper's for printed words; for probabilities above the S of what the evidence does not
    tell (docs/safeguards.md)."""
    sensitive: Threshold = _SENSITIVE
    """τ_identity: the paper's for printed words; for probabilities one that flags few true replies."""

    def resolve(self, reading: Reading) -> PolicyThresholds:
        """Return those for a reading."""
        return PolicyThresholds(
            general=resolve_threshold(self.general, reading),
            sensitive=resolve_threshold(self.sensitive, reading),
        )


class EscalationPolicy(Frozen):
    """Actions on a flagged reply, one rung after the other."""

    general: tuple[Rung, ...] = ("highlight", "cite")
    """Without a sensitive topic."""
    sensitive: tuple[Rung, ...] = RUNGS

    @field_validator("general", "sensitive")
    @classmethod
    def _in_order(cls, rungs: tuple[Rung, ...]) -> tuple[Rung, ...]:
        wanted = tuple(rung for rung in RUNGS if rung in rungs)
        if rungs != wanted:
            raise ValueError(f"each rung stands once, in this order: {', '.join(wanted)}")
        return rungs


Unjudged = Literal["pass", "abstain", "human"]


class OnJudgeFailure(Frozen):
    """Action on a reply that the detector failed on or abstained from."""

    general: Unjudged = "pass"
    """Without a sensitive topic."""
    sensitive: Unjudged = "abstain"


class UserMessages(Frozen):
    """Text in place of a reply, or below it; with `PLACEHOLDER`, if it names the topics."""

    abstain: str = Field(min_length=1)
    """In place of a reply that is withheld."""
    human: str = Field(min_length=1)
    """If the question is handed to a human."""

    @field_validator("abstain", "human")
    @classmethod
    def _only_known_placeholders(cls, text: str) -> str:
        if set("{}") & set(text.replace(PLACEHOLDER, "")):
            raise ValueError(f"has a brace; the only placeholder is {PLACEHOLDER}")
        return text

    def said(self, *which: Literal["abstain", "human"], topics: Iterable[str]) -> str:
        """Return these texts, one after the other."""
        listed = ", ".join(topics)
        return " ".join(getattr(self, name).replace(PLACEHOLDER, listed).strip() for name in which)


class Policy(Frozen):
    """A policy file."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    tagger: Literal["rules", "model", "both"] = "rules"
    """Who finds the topics: words and the passages' labels, the served model, or both."""
    topics: dict[str, Topic] = Field(min_length=1, max_length=MOST_TOPICS)
    """The topics by name. A passage with this name as its label has the topic, too."""
    thresholds: PolicyThresholds = PolicyThresholds()
    """The thresholds of topics without their own."""
    ladder: EscalationPolicy = EscalationPolicy()
    """Actions on flagged replies."""
    regenerations: int = Field(default=1, ge=1, le=5)
    """How often a reply is made again at most."""
    unjudged: OnJudgeFailure = OnJudgeFailure()
    """Actions on replies that could not be judged."""
    says: UserMessages

    @field_validator("topics")
    @classmethod
    def _named(cls, topics: dict[str, Topic]) -> dict[str, Topic]:
        for name, topic in topics.items():
            if not name.strip():
                raise ValueError("a topic has an empty name")
            if not all(word.strip() for word in topic.words):
                raise ValueError(f"an empty word would be in every text; remove it from the topic {name}")
            unread = next((word for word in topic.words if not TOKEN.search(word)), None)
            if unread is not None:
                raise ValueError(
                    f"the word {unread!r} of the topic {name} has no letter or digit to look for"
                )
        return topics

    @model_validator(mode="after")
    def _sensitive_is_stricter(self) -> Self:
        for reading in get_args(Reading):
            found = self.thresholds.resolve(reading)
            general, sensitive = found.general, found.sensitive
            if isinstance(general, float) and isinstance(sensitive, float) and sensitive > general:
                raise ValueError(
                    f"thresholds: sensitive ({sensitive}) is above general ({general}), and so less strict"
                )
        return self

    def resolve(self, reading: Reading) -> Policy:
        """Return the policy for a detector whose scores are made so: each threshold is one number."""
        topics = {
            name: topic
            if topic.threshold is None
            else topic.model_copy(update={"threshold": resolve_threshold(topic.threshold, reading)})
            for name, topic in self.topics.items()
        }
        return self.model_copy(update={"topics": topics, "thresholds": self.thresholds.resolve(reading)})

    @property
    def digest(self) -> str:
        """Hash of its content, 16 hex digits."""
        return digest(self.model_dump(mode="json"))[:16]

    @property
    def has_numbers(self) -> bool:
        """True if any of its thresholds is a number, and so a score from 0 to 1."""
        own = (topic.threshold for topic in self.topics.values())
        return any(
            isinstance(one, float | Mapping)
            for one in (self.thresholds.general, self.thresholds.sensitive, *own)
        )

    def decision(
        self, topics: Iterable[str], labels: Mapping[str, float | Literal["detector"]], sensitive: bool
    ) -> Decision:
        """Return by what a reply on these topics is flagged, and whether one of them is sensitive.

        The policy's thresholds must be single ones (`resolve`).

        Args:
            topics: names of topics of the policy, and of `labels`.
            labels: the scenario's stricter thresholds by topic; these topics are sensitive.
            sensitive: whether to take it for sensitive even if no topic is.
        """
        rules: list[Threshold] = [self.thresholds.sensitive] if sensitive else []
        for name in topics:
            topic = self.topics.get(name, Topic())
            is_sensitive = topic.sensitive or name in labels
            sensitive = sensitive or is_sensitive
            if topic.threshold is not None:
                rules.append(topic.threshold)
                continue
            usual = self.thresholds.general, self.thresholds.sensitive if is_sensitive else None
            rules += [rule for rule in (*usual, labels.get(name)) if rule is not None]
        rules = rules or [self.thresholds.general]
        numbers = [rule for rule in rules if isinstance(rule, float)]
        return Decision(sensitive, min(numbers, default=None), "detector" in rules)

    def rungs(self, sensitive: bool) -> tuple[Rung, ...]:
        """Return the ladder for topics of that kind."""
        return self.ladder.sensitive if sensitive else self.ladder.general


@dataclass(frozen=True)
class Decision:
    """By what a reply is flagged: the strictest threshold of its topics, or the general one."""

    sensitive: bool
    """True if a topic is sensitive."""
    threshold: float | None
    """The lowest threshold; None: only the detector's own decision counts."""
    own: bool
    """True if the detector's own decision counts."""

    def flags(self, judgement: Judgement) -> bool | None:
        """Return whether a reply is flagged; None if it was not judged."""
        if judgement.score is None:
            return None
        reached = self.threshold is not None and judgement.score >= self.threshold
        return reached or (self.own and bool(judgement.flagged))


def list_built_in_policies() -> list[str]:
    """Return the names of the policies that come with hallulab."""
    return sorted(path.stem for path in BUILT_IN.glob("*.yaml"))


def load_policy(name_or_path: str) -> Policy:
    """Read a policy.

    Args:
        name_or_path: name of a built-in policy, or path of a YAML file.

    Raises:
        UsageError: there is no such policy, or something in it is wrong; names file, line and remedy.
    """
    if name_or_path in list_built_in_policies():
        return read_yaml(BUILT_IN / f"{name_or_path}.yaml", SCHEMA).check(Policy)
    path = expand_home(name_or_path)
    if not is_there(path):
        raise UsageError(
            f"{name_or_path}: no such policy. Give the path of a YAML file ({SCHEMA}), or one of: "
            f"{', '.join(list_built_in_policies())}."
        )
    return read_yaml(path, SCHEMA).check(Policy)


KIND = "guarded"
"""The name under which guarded chatbots are registered."""


class Part(Frozen):
    """A registered kind with options."""

    kind: str
    """The name it is registered under."""
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value


class DetectorPart(Part):
    """A detector that guards."""

    model: str | None = None
    """Name under `models` of the model that it judges by; None: the chatbot's own."""


class GuardedOptions(Frozen):
    """Options of a guarded chatbot."""

    chatbot: Part = Part(kind="vanilla")
    """The chatbot that is wrapped: a kind, or `{kind, options}`."""
    detector: DetectorPart = DetectorPart(kind="metarag")
    """The detector that judges each draft: a kind, or `{kind, options, model}`."""
    policy: Annotated[str, LeadsTo("policy")] = "metarag"
    """Name of a built-in policy, or path of a YAML file, from the working directory."""

    @field_validator("chatbot")
    @classmethod
    def _wraps_no_guard(cls, part: Part) -> Part:
        if part.kind == KIND:
            raise ValueError("a guarded chatbot cannot wrap another one")
        return part


def find_wrapped_chatbot(options: Mapping[str, Any]) -> Part | None:
    """Return the chatbot that a guarded one with these options wraps; None if they are wrong."""
    try:
        return GuardedOptions.model_validate(dict(options)).chatbot
    except ValidationError:
        return None  # whoever makes the chatbot says what is wrong

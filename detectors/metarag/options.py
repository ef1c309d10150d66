"""Options of MetaRAG: the paper's ablation (section 5.1) and its safeguards (section 3.6)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hallulab.scenarios.transcript import Frozen

Threshold = Annotated[float, Field(ge=0.0, le=1.0)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0)]


class MetaRagOptions(Frozen):
    """Options of the detector `metarag`."""

    mutations: int = Field(default=2, ge=1, le=8)
    """N: variants of each relation for each factoid."""
    tau: Threshold | None = None
    """Score from which a factoid, and with it the reply, is flagged. None: the one tuned for the model if
    there is one, else the paper's 0.5 for printed words, and 0.375 for probabilities."""
    identity_thresholds: dict[str, Threshold] | None = None
    """Stricter thresholds by topic, such as `pregnancy: 0.3`. Of the topics of the evidence, the lowest one
    counts if it is below `tau`. None: the scenario's."""
    reading: Literal["auto", "probability", "word"] = "auto"
    """How a verifier's decision is read: as the printed word YES, NO or NOT SURE, as in the paper, or from
    the probabilities of its first word. `auto`: by `probability` for models of the catalogue, which are
    small, where the endpoint gives log-probabilities; else by `word`."""
    decomposer: str | None = None
    """Model (a name under `models`) that splits replies into factoids. None: the detector's own."""
    mutator: str | None = None
    """Model that writes the variants. None: the detector's own."""
    verifiers: tuple[str, ...] = ()
    """Models that verify; several are an ensemble with the mean penalty. Empty: the detector's own."""
    decomposition_temperature: Temperature = 0.0
    """Temperature of decomposition."""
    mutation_temperature: Temperature = 0.0
    """Temperature of mutation; the paper compares 0 and 0.7."""
    verification_temperature: Temperature = 0.0
    """Temperature of verification by printed word."""
    max_factoids: int = Field(default=24, ge=1)
    """More factoids of a reply are not judged; the judgement is then marked truncated."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated."""

"""Options of HalluDetect."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hallulab.scenarios.transcript import Frozen

Kind = Literal["mixture", "probability", "word"]
"""A way to do the analysis."""


class HalluDetectOptions(Frozen):
    """Options of the detector `halludetect`."""

    threshold: float | None = Field(default=None, gt=1.0, le=5.0)
    """Severity from which a hallucination is kept. None: the one tuned for the model if there is one, else
    the paper's 4."""
    reading: Literal["auto"] | Kind = "auto"
    """How the analysis is done. `word`: the model writes a list of hallucinations, as in the paper, which
    takes a capable model. `mixture`: one question a sentence on the turn's own passages, weighed with its
    words. `probability`: the paper's steps with questions about each sentence. `auto`: `mixture` where its
    weights were learnt for the model, `probability` for other models of the catalogue, which are small, else
    `word`."""
    samples: int = Field(default=3, ge=1, le=9)
    """Samples of the analysis for self-consistency: differently worded questions (at most as many as there
    are wordings; `probability`) or sampled lists (`word`)."""
    temperature: float = Field(default=0.7, ge=0.0, le=2.0)
    """Temperature of sampled lists; the paper's text has lost its value."""
    overlap: bool = True
    """Whether overlap of words and numbers with the evidence counts as much as the questions together
    (`probability`; ours, see `overlap.py`)."""
    retrieval_factor: int = Field(default=2, ge=1)
    """Passages searched for, as a multiple of the turn's own. `mixture` asks about the further passages only
    if the own ones say nothing."""
    reasons: bool = True
    """Whether a model states the reason of each hallucination (`probability`; one short call each). `word`
    always has reasons."""
    max_evidence_characters: int = Field(default=12000, ge=100)
    """Longer evidence is cut here; the judgement is then marked truncated (`probability`, `word`)."""
    near_evidence_characters: int = Field(default=4000, ge=100)
    """Characters of the passages nearest to the reply, which are shown with a question (`mixture`)."""

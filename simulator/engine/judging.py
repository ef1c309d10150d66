"""The plan of `hallulab judge`: what is imported, and which detectors judge it."""

from __future__ import annotations

import dataclasses
import logging
import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.agents.concurrency import saying_if_stopped
from hallulab.agents.models.recording import Recording
from hallulab.agents.serving.catalogue import resolve
from hallulab.detectors.base.protocol import Detector, DetectorContext, Traits
from hallulab.detectors.registry import DETECTORS, DetectorFactory, find_detector
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.engine.participants import is_model_needed, make_detectors
from hallulab.simulator.options.commands import DetectOptions, JudgeOptions
from hallulab.simulator.options.data import ImportOptions
from hallulab.simulator.options.groups import Chosen, ModelOptions, RecordingOptions, to_path
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.outputs import name_folder_after
from hallulab.simulator.records.run_files import has_journal

_log = logging.getLogger(__name__)

WITHOUT_MODEL = "combined"
"""The detector that judges where no model is named."""

WORTH = (
    "combined asks no model. On 216 replies of strong models (MTRAG, seen while it was made) its AUROC is "
    "0.873 [0.79, 0.92], that of counting words 0.855; on 38 replies of small bots it is 0.458, no better "
    "than chance. A capable model judges better: --base-url URL --model NAME (docs/studies/trust.md)."
)


@dataclass(frozen=True)
class JudgePlan:
    """Two commands that judge chats, one after the other."""

    imports: ImportOptions
    detects: DetectOptions
    asks_no_model: bool
    """True if nobody named a model or a detector."""

    @property
    def continuation(self) -> str:
        """The command that judges what is not judged yet, for people to type."""
        options, words = self.detects, ["hallulab", "detect", str(self.detects.folder)]
        names = [
            one if isinstance(one, str) else str(one.get("kind", one.get("name")))
            for one in options.detectors or ()
        ]
        urls = [options.base_url] if isinstance(options.base_url, str) else options.base_url or ()
        given = [("-c", options.config), ("--detectors", ",".join(names)), ("--model", options.model)]
        given += [("--base-url", url) for url in urls] + [("--api-key-env", options.api_key_env)]
        return shlex.join([*words, *(str(word) for pair in given if pair[1] for word in pair)])

    def naming_continuation(self) -> AbstractContextManager[None]:
        """Log which command goes on, if the block is interrupted or fails."""
        return saying_if_stopped(f"the chats are imported. Go on by: {self.continuation}", _log.warning)


async def plan_judging(options: JudgeOptions, file: Path) -> JudgePlan:
    """Return what judges a file of chats, once the detectors are known to be right. Nothing is written.

    Raises:
        UsageError: a detector, an option of it or the experiment file is at fault; a detector asks a model,
            and none is named; or the run folder is there.
    """
    chosen = None if options.detectors is None else name_detectors(options.detectors)[0]
    fields = {**options.collect_model_fields(), "detectors": chosen}
    experiment = load_experiment(options.config_path, fields)
    names_model = bool(experiment.model or experiment.base_url or experiment.models)
    asks_no_model = not names_model and "detectors" not in experiment.model_fields_set
    if asks_no_model:
        chosen = [WITHOUT_MODEL]
    else:
        await _check_detectors(experiment, names_model, options.replay is not None)
    out = to_path(options.out) or name_folder_after(file)
    groups = (*dataclasses.fields(ModelOptions), *dataclasses.fields(RecordingOptions))
    shared: dict[str, Any] = {one.name: getattr(options, one.name) for one in groups}
    plan = JudgePlan(
        ImportOptions(file, out=out, documents=options.documents, map=options.map),
        DetectOptions(out, chosen, **shared),
        asks_no_model,
    )
    if out.is_dir() and any(out.iterdir()):
        go_on = f"Go on with it by `{plan.continuation}`, or give" if has_journal(out) else "Give"
        raise UsageError(f"{out} is there and not empty. {go_on} another --out.")
    return plan


async def _check_detectors(experiment: Experiment, names_model: bool, is_replayed: bool) -> None:
    """Check detectors and their model before the chats are read. Detectors of other people are not made.

    Raises:
        UsageError: see `plan_judging`.
    """
    own = tuple(one for one in experiment.detectors if one.kind in DETECTORS)
    others = {one.name: find_detector(one.kind) for one in experiment.detectors if one not in own}
    async with open_pool(experiment, Recording()) as pool:
        made = make_detectors(experiment.model_copy(update={"detectors": own}), pool, {})
    asking = [one.name for one in made if is_model_needed([one])]
    asking += [
        name
        for name, factory in others.items()
        if isinstance(traits := getattr(factory, "traits", None), Traits) and traits.needs_model
    ]
    if asking and not names_model:
        raise UsageError(
            f"{asking[0]} asks a model, and none is named. Give --base-url URL --model NAME, or --model NAME "
            "to have it served here; combined and lexical ask none."
        )
    if asking and experiment.model and experiment.base_url is None and not is_replayed:
        resolve(experiment.model)


@dataclass(frozen=True)
class _HeldDetector:
    """A detector of a Python program as the factory of it."""

    detector: Detector

    @property
    def traits(self) -> Traits:
        return self.detector.traits

    def __call__(self, name: str, context: DetectorContext) -> Detector:
        return self.detector


def name_detectors(given: Sequence[Chosen | object]) -> tuple[list[Chosen], Mapping[str, DetectorFactory]]:
    """Return detectors as an experiment names them, and those that are objects or classes by their kinds.

    >>> name_detectors(["lexical", "my_detector:Mine"])
    (['lexical', 'my_detector:Mine'], {})

    Raises:
        UsageError: one is neither a name, a mapping, a `Detector` nor what makes one.
    """
    chosen: list[Chosen] = []
    factories: dict[str, DetectorFactory] = {}
    for number, one in enumerate(given):
        if isinstance(one, str | Mapping):
            chosen.append(one)
            continue
        made: Any = type(one) if isinstance(one, Detector) else one
        if isinstance(one, Detector):
            factory: DetectorFactory = _HeldDetector(one)
            name = one.name
        elif callable(one):
            factory, name = one, getattr(one, "__name__", type(one).__name__)
        else:
            raise UsageError(
                f"detectors: item {number} is a {type(one).__name__}. Give a name, a mapping, a "
                "hallulab.Detector or its class."
            )
        kind = f"{made.__module__}:{getattr(made, '__qualname__', name)}"
        if kind in factories:
            kind = f"{kind}#{number}"
        factories[kind] = factory
        chosen.append({"name": name, "kind": kind})
    return chosen, factories

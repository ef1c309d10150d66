"""The runs and conversations that the command line of the viewer lets its pages start.

A page is a program that others may have written into. So it may choose among what runs no code of its choice;
code, folders, packs and foreign addresses come from the command line alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import list_built_in_packs
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.leads import list_leads, list_leads_of_components
from hallulab.simulator.records.outputs import RUNS, make_folder_by_time
from hallulab.simulator.records.recipients import list_recipients, list_unnamed
from hallulab.simulator.viewer.runs import is_run


@dataclass(frozen=True)
class Offer:
    """Whom pages may start and talk to, and where it is written."""

    experiment: Experiment = field(default_factory=Experiment)
    """The one of `--experiment`, `--model` and the like; else the defaults."""
    folder: Path | None = None
    """The folder in which each run gets a run folder; None: none is shown that holds run folders."""
    can_chat: bool = False
    """True if the command line named a file or a model, so that there is somebody to talk to."""

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that can be chosen: the experiment's, then the built-in ones."""
        return list(dict.fromkeys([self.experiment.scenario, *list_built_in_packs()]))

    def make_folder(self) -> RunFolder:
        """Make a new run folder, named by the time.

        Raises:
            UsageError: no folder is shown that holds run folders.
            OperationalError: it cannot be made.
        """
        if self.folder is None:
            raise UsageError(
                "No folder is shown that runs can be written in: `hallulab view runs` shows one."
            )
        return RunFolder(make_folder_by_time(self.folder))

    def require_allowed(self, experiment: Experiment) -> None:
        """Check that an experiment names nothing that is the command line's to name.

        Raises:
            UsageError: it names code, a folder or a pack, or whoever gets a key or, elsewhere, texts; or a
                component is not registered, or an option of a chatbot is wrong.
        """
        own = {(lead.target, lead.value) for lead in list_leads(self.experiment)}
        found = [lead for lead in list_leads(experiment) if (lead.target, lead.value) not in own]
        found += list_leads_of_components(experiment, known=self.experiment)
        for lead in (one for one in found if not one.is_harmless):
            where = lead.component or lead.field
            if lead.target == "variable":  # it may be the key itself, which no page shall show
                raise UsageError(f"{where}: this is no name of an environment variable. Never give the key.")
            shown = lead.value if len(lead.value) <= 100 else f"{lead.value[:100]}…"
            raise UsageError(
                f"{where}: no page may start {shown!r}, which is code, a file or a folder. Name it in an "
                "experiment file, and start the viewer with --experiment FILE."
            )
        for one in list_unnamed(list_recipients(experiment), list_recipients(self.experiment)):
            raise UsageError(
                f"No page may start a run in which {one.describe()}. Name it when you start the viewer, with "
                "--experiment FILE, or with --base-url and --api-key-env."
            )


def load_offer(options: ModelOptions, paths: Sequence[Path]) -> Offer:
    """Return what the command line offers. The default folder of runs is made: it is somebody's first run.

    Raises:
        UsageError: the experiment is at fault; or it names whom to talk to, but no shown folder holds runs.
    """
    experiment = load_experiment(options.config_path, options.collect_model_fields())
    can_chat = any((options.config, options.model, options.base_url))
    folder = next((path for path in paths if not is_run(path)), None)
    if folder == RUNS:
        folder.mkdir(exist_ok=True)
    if can_chat and folder is None:
        raise UsageError(
            f"{paths[0]} is a run folder, and what you say is saved in a folder of its own. Give a folder "
            "that holds run folders, too."
        )
    return Offer(ensure_model(experiment) if can_chat else experiment, folder, can_chat)

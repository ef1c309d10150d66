"""Where a run stands: how much of it is done, who writes it, and whether it can go on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack_files import load_without_documents
from hallulab.simulator.records.choices import count_users
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_json import SavedExperiment
from hallulab.simulator.records.recipients import Recipient, list_recipients, list_unnamed
from hallulab.simulator.viewer.launching import Launch, Launcher
from hallulab.simulator.viewer.offers import require_offered
from hallulab.simulator.viewer.runs import ShownRun

State = Literal["running", "stopping", "elsewhere", "ended", "unfinished", "whole"]
"""`elsewhere`: another process writes it. `ended`: this viewer started it, and it has ended: by itself, or
before it was whole."""

ELSEWHERE = "This run is being written by another process."
STOPPED = "Stopped. What was finished is kept."
STOPPING = "Stopping. What is finished is kept. Stop it again to kill it."
ENDED = "The run has ended."
FAILED = "The run has failed."


@dataclass(frozen=True)
class RunStanding:
    """Where a run stands."""

    state: State
    conversations: int
    """Those that have ended without an error."""
    failed: int
    """Those that have ended with one; they are held anew when the run goes on."""
    planned: int | None
    """Those that there shall be; None: not known."""
    verdicts: int
    """Those that were given."""
    wanted: int
    """Those of the turns that there are, by all detectors."""
    is_most: bool
    """Whether fewer conversations may do, because the run ends when it is decided."""
    line: str
    """The last line of the command, while it runs."""
    note: str
    """What there is to say, in a sentence or two; empty: nothing."""
    can_resume: bool
    """Whether the page can go on with it."""
    unnamed: tuple[Recipient, ...] = ()
    """Those that going on would ask and that the command line does not name: each has to be confirmed."""

    @property
    def is_watched(self) -> bool:
        """Whether it changes by itself."""
        return self.state in ("running", "stopping", "elsewhere")

    @property
    def mark(self) -> str:
        """Return what differs where anything else does."""
        return digest(asdict(self))[:16]


class StandingKeeper:
    """Finds out where runs stand.

    Args:
        launcher: starts them.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._planned: dict[str, tuple[Experiment, int | None]] = {}

    def of(self, run: ShownRun) -> RunStanding | None:
        """Return where a run stands; None: it was not planned, such as one that was imported.

        Raises:
            UsageError: experiment.json is damaged.
            OperationalError: the index or a journal cannot be read or written.
        """
        launch, saved = self._launcher.get(run.folder), run.folder.read_experiment()
        experiment = _choose_experiment(saved, launch)
        if experiment is None or (saved is not None and not _is_planned(saved)):
            return None
        writing = _find_writing(run, launch)  # before it is counted: what has ended writes nothing more
        run.growth.catch_up()
        counts, planned = run.growth.count(), self._count_planned(run.id, experiment)
        done = counts.conversations - counts.failed
        wanted = counts.turns * len(experiment.detectors)
        is_whole = planned is not None and done >= planned and counts.verdicts >= wanted
        may_lack = planned is None or run.growth.is_working or experiment.until_decided is not None
        state = writing or _find_state(launch, is_whole, may_lack)
        line = "" if launch is None else launch.read_last_line()
        is_over = state == "unfinished" or (state == "ended" and launch is not None and launch.code != 0)
        refusal = self.find_refusal(experiment) if is_over else ""
        return RunStanding(
            state,
            done,
            counts.failed,
            planned,
            counts.verdicts,
            wanted,
            experiment.until_decided is not None,
            line if state in ("running", "stopping") else "",
            " ".join(filter(None, (_describe_state(state, launch, line), refusal))),
            is_over and not refusal,
            self.list_unnamed(experiment) if is_over and not refusal else (),
        )

    def find_experiment(self, run: ShownRun) -> Experiment | None:
        """Return what a run runs: what experiment.json says, else what was started; None: not known.

        Raises:
            UsageError: experiment.json is damaged.
        """
        return _choose_experiment(run.folder.read_experiment(), self._launcher.get(run.folder))

    def find_refusal(self, experiment: Experiment) -> str:
        """Return why a page does not go on with an experiment; empty: it does."""
        try:
            require_offered(experiment, self._launcher.source.experiment)
        except UsageError as error:
            return str(error)
        return ""

    def list_unnamed(self, experiment: Experiment) -> tuple[Recipient, ...]:
        """Return those whom an experiment asks and the command line does not name, for confirmation."""
        return list_unnamed(list_recipients(experiment), list_recipients(self._launcher.source.experiment))

    def _count_planned(self, id: str, experiment: Experiment) -> int | None:
        """Return how many conversations there shall be; None where that is in a pack which is not offered."""
        known = self._planned.get(id)
        if known is None or known[0] != experiment:
            known = self._planned[id] = experiment, self._count(experiment)
        return known[1]

    def _count(self, experiment: Experiment) -> int | None:
        if experiment.scenario not in self._launcher.source.scenarios:
            return None
        try:
            return count_users(experiment, load_without_documents(experiment.scenario)) * len(
                experiment.chatbots
            )
        except UsageError:
            return None


def _choose_experiment(saved: SavedExperiment | None, launch: Launch | None) -> Experiment | None:
    return saved.experiment if saved else launch.experiment if launch else None


def _describe_state(state: State, launch: Launch | None, line: str) -> str:
    """Say in a sentence what there is to say of a state; empty: nothing."""
    if state == "ended" and launch is not None:
        return STOPPED if launch.is_stopped else ENDED if launch.code == 0 else line or FAILED
    return {"stopping": STOPPING, "elsewhere": ELSEWHERE}.get(state, "")


def _is_planned(saved: SavedExperiment) -> bool:
    return not saved.lacks_simulated_user and saved.branched_from is None


def _find_writing(run: ShownRun, launch: Launch | None) -> State | None:
    """Return the state of a run that is being written; None: nobody writes it."""
    if launch is not None and launch.code is None:
        return "stopping" if launch.is_stopped else "running"
    return "elsewhere" if run.folder.is_claimed else None


def _find_state(launch: Launch | None, is_whole: bool, may_lack: bool) -> State:
    """Return the state of a run that nobody writes.

    Args:
        launch: what this viewer started last; it has ended.
        is_whole: whether all that was planned is there.
        may_lack: whether a run may have ended by itself without that, as far as is known.
    """
    if launch is None:
        return "whole" if is_whole else "unfinished"
    if launch.code != 0:  # another process may have gone on with it
        return "whole" if is_whole else "ended"
    return "ended" if is_whole or may_lack else "unfinished"

"""A run is a folder: the experiment, two journals, and the reports made from them."""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hallulab.agents.models.abilities import ReadHow
from hallulab.agents.models.replicas import Answered
from hallulab.agents.models.wave_files import clear_waves
from hallulab.scenarios.datasets.annotations import TurnPlace
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import make_folder_beside, write_atomically, write_together
from hallulab.scenarios.files.opening import open_descriptor
from hallulab.scenarios.text.wording import join_names
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.records.experiment_json import SavedExperiment, read_saved
from hallulab.simulator.records.journal_files import LARGEST, JournalFiles, LazyJournal
from hallulab.simulator.records.journals import (
    Journals,
    count_turns,
    join_journals,
    read_conversations,
    read_journals,
    read_shard,
)
from hallulab.simulator.records.run_files import (
    CONVERSATIONS,
    SHARDS,
    has_journal,
    is_in_shards,
    list_shards,
    require_run,
)

_labelling = threading.Lock()
"""Threads of this process that write labels; other processes are kept out by a lock on the file of marks."""

PAGES = "report-pages"
"""Folder of the page files of a big run."""


class RunFolder:
    """Names, reads and writes the files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.experiment = path / "experiment.json"
        self.conversations = path / CONVERSATIONS
        self.verdicts = path / "verdicts.jsonl"
        self.turns = path / "turns.jsonl"
        """Turns of conversations that were cut off (`hallulab.simulator.engine.execution`)."""
        self.again = path / "again.jsonl"
        """Second verdicts on some replies (`hallulab detect --again`), one file also where journals are in
        shards."""
        self.audit = path / "audit.jsonl"
        self.report = path / "report.json"
        self.table = path / "report.csv"
        self.page = path / "report.html"
        self.pages = path / PAGES
        self.attacks = path / "attacks.csv"
        self.concentration = path / "concentration.csv"
        self.tables = tuple(path / f"{name}.parquet" for name in ("turns", "verdicts", "spans"))
        """Parquet tables of `hallulab export --format tables`."""
        self.annotations = path / "annotations.jsonl"
        """Labels of annotators. The file is theirs: lines are added at its end when they ask for it
        (`hallulab annotate --add`, `hallulab view`), and none is changed or deleted."""
        self.marks = path / "annotation-marks.jsonl"
        """The keys that they pressed in the viewer (`hallulab.simulator.annotate.marks`), likewise."""
        self.free_conversations = path / "free-conversations.jsonl"
        self.free_verdicts = path / "free-verdicts.jsonl"
        """Copies of the journals of the run that this one branches off from; other runs have none."""
        self.waves = path / "batch"
        """Requests to models in waves (`hallulab.agents.models.wave_files`)."""
        self.derived: tuple[Path, ...] = (
            self.report,
            self.table,
            self.page,
            self.attacks,
            self.concentration,
            *sorted(path.glob("report-*.csv")),
        )
        """Files that are made from the others; the last ones are of other people's metrics."""
        self.files: tuple[Path, ...] = (
            *self.derived,
            *self.tables,
            self.free_verdicts,
            self.free_conversations,
            self.verdicts,
            self.turns,
            self.again,
            *list_shards(self.verdicts),
            self.audit,
            self.conversations,
            *list_shards(self.conversations),
            self.experiment,
        )
        """All files, in the order of deletion."""

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the folder, so that nobody else writes here. The system unlocks it when the process ends.

        Make the folder if it is missing, and remove it at the end if it is empty. The folder itself is
        locked, because a lock file could never be removed without a race.

        Raises:
            UsageError: somebody else writes here, or a file of the run is a link to elsewhere.
            OperationalError: the folder cannot be made.
        """
        self.refuse_links_out((*self.files, self.pages, self.waves))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise OperationalError(f"cannot write {self.path}: {error.strerror}.") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"another run is writing to {self.path}. Wait until it ends, or use another folder."
                ) from error
            except OSError:
                pass  # some network file systems know no locks
            yield
        finally:
            os.close(handle)
            with suppress(OSError):
                self.path.rmdir()

    @contextmanager
    def labelling(self) -> Iterator[None]:
        """Wait until nobody else writes labels or marks here, and let others wait meanwhile.

        A run may write at the same time: its files are others. The file of marks is locked, and made if it
        is missing.

        Raises:
            UsageError: a file of labels or marks is a link to elsewhere.
            OperationalError: the file of marks cannot be opened.
        """
        self.refuse_links_out([self.marks, self.annotations])
        with _labelling:
            try:
                handle = open_descriptor(self.marks, os.O_RDWR | os.O_CREAT)
            except OSError as error:
                raise OperationalError(f"cannot write {self.marks}: {error.strerror}.") from error
            try:
                with suppress(OSError):  # some network file systems know no locks
                    fcntl.flock(handle, fcntl.LOCK_EX)
                yield
            finally:
                os.close(handle)

    @property
    def is_claimed(self) -> bool:
        """True if a process writes here (`claimed`). It takes a lock for a moment to find out."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False  # some network file systems know no locks
        finally:
            os.close(handle)
        return False

    def refuse_links_out(self, files: Iterable[Path]) -> None:
        """Raise UsageError if one of the run's `files` is a link that leads out of the folder.

        Else a folder from somebody could have any file of ours overwritten.
        """
        here = Path(os.path.realpath(self.path))
        for file in files:
            target = Path(os.path.realpath(file))
            if target.parent != here:
                raise UsageError(
                    f"{file}: this link leads out of the run folder, to {target}, which is not written to. "
                    "Delete the link, or put the file in its place."
                )

    def refuse_recording(self, recording: Path | None) -> None:
        """Raise UsageError if a recording, if there is one, is a file that the run itself writes."""
        if recording is None:
            return
        place = os.path.realpath(recording)
        if place in map(os.path.realpath, (*self.files, self.annotations, self.marks)):
            raise UsageError(
                f"--record {recording}: the run folder keeps a file of its own there. Give another file."
            )

    def clear(self) -> None:
        """Delete the run's own files, and nothing else in the folder."""
        for file in self.files:
            file.unlink(missing_ok=True)
        self.clear_pages()
        clear_waves(self.waves)

    def clear_pages(self) -> None:
        """Delete the page files, and their folder if nothing else is in it."""
        if self.pages.is_dir():
            for file in self.pages.glob("page-*.html"):
                file.unlink()
            with suppress(OSError):
                self.pages.rmdir()

    @contextmanager
    def new_pages(self) -> Iterator[Path]:
        """Yield an empty folder for page files, which take the place of the old ones at the end.

        Raises:
            OperationalError: they cannot be written. The old ones are intact unless they cannot be replaced.
        """
        beside: Path | None = None
        try:
            beside = make_folder_beside(self.pages)
            yield beside
            self.clear_pages()
            self.pages.mkdir(exist_ok=True)
            for file in sorted(beside.iterdir()):
                file.replace(self.pages / file.name)
        except OSError as error:
            raise OperationalError(f"cannot write {self.pages}: {error.strerror}.") from error
        finally:
            if beside is not None:
                shutil.rmtree(beside, ignore_errors=True)

    @property
    def is_in_shards(self) -> bool:
        """True if the journals are in shards.

        Raises:
            UsageError: there is also a journal in one file.
        """
        return is_in_shards(self.path)

    @property
    def has_journal(self) -> bool:
        """True if there is a journal of conversations, in one file or in shards."""
        return has_journal(self.path)

    @property
    def is_empty(self) -> bool:
        """True if its journal of conversations has no byte."""
        return not any(file.stat().st_size for file in self._list_conversations() if file.is_file())

    def _list_conversations(self) -> list[Path]:
        """Return the files of the journal of conversations."""
        return list_shards(self.conversations) if self.is_in_shards else [self.conversations]

    def require(self) -> None:
        """Raise UsageError unless there is a journal of conversations."""
        require_run(self.path)

    def read_experiment(self) -> SavedExperiment | None:
        """Read experiment.json; None where there is none.

        Raises:
            UsageError: the file is damaged, or hallulab did not write it.
        """
        return read_saved(self.experiment)

    def write_experiment(self, saved: SavedExperiment) -> None:
        """Replace experiment.json in one step."""
        write_atomically(self.experiment, saved.text())

    def add_answers(self, answered: Sequence[Answered], read_how: Sequence[ReadHow]) -> None:
        """Add what endpoints answered just now, and how models were read, to what experiment.json says.

        Raises:
            OperationalError: it cannot be written.
            UsageError: it is damaged.
        """
        saved = self.read_experiment() if answered or read_how else None
        added = saved and saved.adding_answers(answered, read_how)
        if added is not None and added != saved:
            self.write_experiment(added)

    def read_conversations(self) -> Sequence[Conversation]:
        """Read the conversations that count (`hallulab.simulator.records.journals`)."""
        return LazyJournal.join([read_conversations(file) for file in self._list_conversations()])

    def find_held(self, places: Collection[TurnPlace]) -> set[TurnPlace]:
        """Return those of the turns that stand in the journal, also where they do not count.

        Raises:
            UsageError: a journal is damaged.
        """
        if not places:
            return set()
        counts = [count_turns(file) for file in self._list_conversations()]
        return {(id, turn) for id, turn in places if any(turn < count.get(id, 0) for count in counts)}

    def read_journals(self) -> Journals:
        """Read both journals, checked against each other (`hallulab.simulator.records.journals`).

        Conversations of an older user or chatbot are left out (`select_current`).

        Raises:
            UsageError: a journal or experiment.json is damaged.
        """
        return self.select_current(self.read_all_journals())

    def iterate_journals(self) -> Iterator[Journals]:
        """Yield the journals, shard by shard where they are in shards.

        Raises:
            UsageError: a journal or experiment.json is damaged.
        """
        if not self.is_in_shards:
            yield self.read_journals()
            return
        for number in range(SHARDS):
            yield self.read_shard(number)

    def read_all_journals(self) -> Journals:
        """Read both journals, conversations of older users and chatbots included.

        Raises:
            UsageError: a journal is damaged.
        """
        if not self.is_in_shards:
            return read_journals(self.conversations, self.verdicts)
        return join_journals([self._read_shard(number) for number in range(SHARDS)])

    def read_shard(self, number: int) -> Journals:
        """Read what `read_journals` reads of one shard.

        Raises:
            UsageError: it or experiment.json is damaged.
        """
        return self.select_current(self._read_shard(number))

    def _read_shard(self, number: int) -> Journals:
        conversations, verdicts = (list_shards(path)[number] for path in (self.conversations, self.verdicts))
        return read_shard(conversations, verdicts, number)

    def read_free_running(self) -> Journals:
        """Read the copied journals of the run that this one branches off from.

        Raises:
            UsageError: one is damaged.
        """
        return read_journals(self.free_conversations, self.free_verdicts)

    def write_free_running(self, journals: Journals) -> None:
        """Replace the copied journals.

        Raises:
            OperationalError: they cannot be written; the old ones are intact.
        """
        copies: dict[Path, Sequence[Conversation] | Sequence[Verdict]] = {
            self.free_conversations: journals.conversations,
            self.free_verdicts: journals.verdicts,
        }
        write_together(
            {path: "".join(f"{line.model_dump_json()}\n" for line in lines) for path, lines in copies.items()}
        )

    def select_current(self, journals: Journals) -> Journals:
        """Return journals without the conversations of an older user or chatbot than experiment.json names.

        Raises:
            UsageError: it is damaged, or does not name a chatbot of the journals at all.
        """
        saved = self.read_experiment()
        if saved is None or saved.made_by is None:
            return journals
        known = saved.made_by.chatbots
        for head in journals.heads:
            if head.chatbot not in known:
                raise UsageError(
                    f"{self.experiment}: `made_by` has no chatbot {head.chatbot!r}, which conversation "
                    f"{head.id!r} is with, only {join_names(list(known))}. Correct the name here or there."
                )
        return journals.of(saved.made_by)

    def open_journals(self, journals: Journals, planned: int) -> JournalFiles:
        """Open both journals for appending: in shards if they are, or if a new run has many conversations.

        Args:
            planned: the conversations that the run shall have.

        Raises:
            OperationalError: a file cannot be opened.
        """
        in_shards = self.is_in_shards or (planned > LARGEST and not self.conversations.is_file())
        held = ((head.id, head.persona) for head in journals.heads)
        return JournalFiles(self.conversations, self.verdicts, in_shards, held)

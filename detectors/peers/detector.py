"""The peers as detectors. Each has a worker and an environment, both made when the first reply comes."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from hallulab.agents.concurrency import run_in_daemon_thread
from hallulab.agents.machine.worker_process import WorkerError, WorkerStopped
from hallulab.agents.models.prompt import ChatMessage
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import ClaimCheck, identify_model
from hallulab.agents.versions import compute_version
from hallulab.detectors.base.judging import Abstention, find_best_passage, gather_all, judge
from hallulab.detectors.base.protocol import Detector, DetectorContext, Traits
from hallulab.detectors.peers.process import (
    Abstained,
    Answerer,
    Failed,
    Judged,
    PeerProcess,
    PeerPrompt,
    ReplySpan,
    Request,
    Text,
    build_worker_command,
    digest_programs,
    is_installed,
    read_peer_requirements,
)
from hallulab.scenarios.components import LeadsTo, read_options
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file, is_there, require_files_only
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Frozen, Judgement, Span, Unit
from hallulab.scenarios.turn_views import TurnView

PACKAGES = "1.1 to 2.0 GB on disk"
"""Size of a peer's environment."""

_HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


class PeerOptions(Frozen):
    """Options of every peer."""

    weights: Annotated[str | None, LeadsTo("weights")] = Field(default=None, min_length=1)
    """Folder with the model's files, or its name on the model hub. None: the published model on the hub."""
    threshold: float | None = Field(default=None, gt=0.0, le=1.0)
    """Score from which a reply, and what is flagged in it, is hallucinated. None: the published one."""
    timeout_s: float = Field(default=300.0, gt=0.0, exclude=True)
    """Seconds without a sign of the worker, once its model is loaded, after which a judgement fails. It
    changes no verdict, so it is no part of the version."""


class PeerDetector(Detector):
    """A peer's worker as a detector.

    Nothing is installed, downloaded or started before the first reply. If that fails, every judgement fails
    with the one sentence that says why. A worker that ends while it judges is restarted for the next reply.
    Replies are judged one after the other; cancelling one does not touch the others.

    Raises:
        UsageError: an option is unknown or wrong, or `weights` names a folder that holds no model.
    """

    KIND: ClassVar[str]
    published: ClassVar[float]
    """Its published threshold."""
    weights: ClassVar[str | None]
    """Folder or hub name of its published weights."""
    weights_size: ClassVar[str | None] = None
    threshold: float
    traits = Traits(needs_model=False)
    OPTIONS: ClassVar[type[PeerOptions]] = PeerOptions
    model_options: ClassVar[tuple[str, ...]] = ("weights",)
    """The options that name a model: a folder, or a name on the hub."""

    def __init__(self, name: str, context: DetectorContext) -> None:
        options = read_options(f"detector {name}", self.OPTIONS, context.options)
        self.name = name
        self._context = context
        self._timeout_s = options.timeout_s
        threshold = self.published if options.threshold is None else options.threshold
        self.threshold = threshold
        self.threshold_protocol = "published" if options.threshold is None else "given"
        given = {option: getattr(options, option) for option in self.model_options}
        models = {
            option: _check_model_source(name, option, model) for option, model in given.items() if model
        }
        self._models = tuple(models.values())
        self._configured = options.model_copy(
            update={"weights": self.weights, **models, "threshold": threshold}
        )
        if self._configured.weights != self.weights:
            self.languages = None  # other weights may know others
        self._configuration = {**self._configured.model_dump(), "peer": self.KIND}
        self._asked = [context.models.get(context.model)] if self.traits.needs_model else []
        self.claim_check = ClaimCheck.by(
            (client.endpoint.model for client in self._asked) if options.weights is None else (), ()
        )
        """The weights of its own judge, instead of the served model."""
        self._worker: PeerProcess | None = None
        self._unusable: str | None = None
        self._turn = threading.Lock()
        self._current: str | None = None
        """The request whose turn it is; read and set by `_handover`."""
        self._handover = threading.Lock()
        self._numbers = count()

    def _find_warnings(self) -> tuple[str, ...]:
        """Return what the first reply fetches, and how large it is."""
        fetched = [] if is_installed(self.KIND) else [f"its packages ({PACKAGES})"]
        if self.weights_size is not None and self._configured.weights == self.weights:
            fetched.append(f"the weights {self.weights} from the hub, once ({self.weights_size})")
        return (f"{self.name} fetches {' and '.join(fetched)}.",) if fetched else ()

    warnings = cached_property(_find_warnings)

    def _compute_version(self) -> str:
        return digest(
            [
                compute_version(
                    __name__,
                    self.VERSION,
                    self._configured,
                    models={client.endpoint.model: identify_model(client) for client in self._asked},
                    seed=self._context.seed if self.traits.needs_model else None,
                ),
                read_peer_requirements(self.KIND),
                digest_programs(self.KIND),
                [_list_files(Path(model)) for model in self._models],
            ]
        )[:16]

    version = cached_property(_compute_version)

    async def detect(self, view: TurnView) -> Judgement:
        """See `Detector.detect`. Abstains when the reply has no words and when there is no evidence."""
        session = self._context.models.session(self.name, self._context.seed, self._context.model)
        return await judge(session, lambda: self._judge(session, view))

    async def _judge(self, session: Session, view: TurnView) -> Judgement:
        if not re.search(r"\w", view.reply):
            raise Abstention("the reply has no words")
        if not any(re.search(r"\w", passage.text) for passage in view.passages):
            raise Abstention("there is no evidence")
        loop = asyncio.get_running_loop()

        def answer(prompts: Sequence[PeerPrompt]) -> tuple[str, ...]:
            return asyncio.run_coroutine_threadsafe(_ask_all(session, prompts), loop).result()

        request, unwanted = _make_request(view, next(self._numbers)), threading.Event()
        try:
            said = await run_in_daemon_thread(lambda: self._converse(request, answer, unwanted))
        except asyncio.CancelledError:
            with self._handover:
                unwanted.set()
                if self._current == request.id:
                    self.close()  # else it would go on computing an answer that nobody wants
            raise
        if isinstance(said, Abstained):
            raise Abstention(said.abstained)
        if isinstance(said, Failed):
            raise WorkerError(f"{self.KIND} failed on this reply: {said.error}")
        return self._judgement(said, view)

    def close(self) -> None:
        """End the worker, if it runs. The next reply starts another one."""
        if self._worker is not None:
            self._worker.stop()

    def _converse(
        self, request: Request, answer: Answerer, unwanted: threading.Event
    ) -> Judged | Abstained | Failed:
        """Judge one reply at a time; blocks."""
        with self._turn:
            with self._handover:
                if unwanted.is_set():
                    raise WorkerError(f"{self.KIND}: the reply was given up while it waited.")
                self._current = request.id
            try:
                worker = self._started()
                try:
                    return worker.judge(request, answer, self._timeout_s)
                except WorkerError as error:
                    raise WorkerError(f"{self.KIND}: {error}.") from error
            finally:
                with self._handover:
                    self._current = None

    def _started(self) -> PeerProcess:
        """Return the worker; if it cannot start, do not try again."""
        if self._unusable is not None:
            raise WorkerError(self._unusable)
        if self._worker is None or self._worker.stopped:
            try:
                self._worker = PeerProcess(build_worker_command(self.KIND))
                self._worker.load(self._configuration)
            except WorkerStopped as error:
                raise WorkerError(f"{self.KIND}: {error}.") from error
            except WorkerError as error:
                remedy = (
                    "; where the model hub cannot be reached, name a folder with the model in `weights`"
                    if self._configuration["weights"]
                    else ""
                )
                self._unusable = f"{self.KIND}: {error}{remedy}."
                raise WorkerError(self._unusable) from error
            except OperationalError as error:
                self._unusable = str(error)
                raise
        return self._worker

    def _judgement(self, said: Judged, view: TurnView) -> Judgement:
        for place in (*(said.spans or ()), *said.units):
            if place.end is not None and place.end > len(view.reply):
                raise WorkerError(
                    f"{self.KIND}: its worker gave [{place.start}, {place.end}), which ends after the reply "
                    f"of {len(view.reply)} characters."
                )
        spans = None if said.spans is None else tuple(self._span(span, view) for span in said.spans)
        units = tuple(
            Unit(
                kind=unit.kind,
                text=_read_text(unit, view.reply),
                start=unit.start,
                end=unit.end,
                score=unit.score,
                details=unit.details,
            )
            for unit in said.units
        )
        return Judgement(
            outcome="scored",
            score=said.score,
            flagged=said.score >= self.threshold,
            spans=spans,
            units=units,
            truncated=said.truncated,
        )

    def _span(self, span: ReplySpan, view: TurnView) -> Span:
        text = _read_text(span, view.reply)
        return Span(
            start=span.start,
            end=span.end,
            text=text,
            score=span.score,
            reason=f"{self.KIND} gives it {span.score:.2f}",
            evidence=find_best_passage(text, view.passages),
        )


class LettuceDetectDetector(PeerDetector):
    """LettuceDetect: a token classifier on ModernBERT marks words. Not yet run on its published weights."""

    KIND = "lettucedetect"
    languages = ("en",)
    published = 0.5
    weights = "KRLabsOrg/lettucedect-base-modernbert-en-v1"
    weights_size = "about 0.6 GB"


class HhemOptions(PeerOptions):
    """Options of the detector `hhem`."""

    foundation: Annotated[str | None, LeadsTo("weights")] = Field(default=None, min_length=1)
    """Folder or hub name of the T5 whose tokenizer and shape the model has. None: the one that `config.json`
    beside the weights names."""
    sentences: bool = False
    """True if each sentence is judged, too, which locates what is flagged."""


class HhemDetector(PeerDetector):
    """HHEM-2.1-Open, Vectara's consistency classifier on T5. Not yet run on its published weights."""

    KIND = "hhem"
    languages = ("en",)
    published = 0.5
    weights = "vectara/hallucination_evaluation_model"
    weights_size = "about 0.5 GB"
    OPTIONS = HhemOptions
    model_options = ("weights", "foundation")


class MiniCheckDetector(PeerDetector):
    """MiniCheck-Flan-T5-Large checks sentences against the evidence. Not yet run on its published weights."""

    KIND = "minicheck"
    languages = ("en",)
    published = 0.5
    weights = "lytang/MiniCheck-Flan-T5-Large"
    weights_size = "about 3 GB"


class FactCgDetector(PeerDetector):
    """FactCG-DeBERTa-v3-Large checks sentences against the evidence. Not yet run on its published weights."""

    KIND = "factcg"
    languages = ("en",)
    published = 0.5
    weights = "yaxili96/FactCG-DeBERTa-v3-Large"
    weights_size = "about 1.7 GB"


class RefCheckerDetector(PeerDetector):
    """RefChecker labels the knowledge triplets of a reply; in an environment of its own.

    Triplets are extracted and checked by the served model; with `weights`, an NLI model checks them.
    """

    KIND = "refchecker"
    published = 0.001
    """The package's strict aggregation: one triplet that is not entailed is enough."""
    weights = None
    traits = Traits()


def _check_model_source(owner: str, option: str, given: str) -> str:
    """Return a folder with a model as an absolute path, or a hub name as it is."""
    folder = expand_home(given)
    if is_file(folder / "config.json"):
        require_files_only(folder)
        return str(folder.absolute())
    if is_there(folder):
        raise UsageError(f"detector {owner}: option `{option}`: {folder} holds no config.json of a model.")
    if not _HUB_NAME.fullmatch(given):
        raise UsageError(
            f"detector {owner}: option `{option}`: there is no folder {given}; name one that holds a "
            "model, or a model on the hub (owner/name)."
        )
    return given


def _list_files(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change (ns) of a local model's files; none for a name on the hub."""
    if not folder.is_absolute():
        return []
    found = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in found]


def _make_request(view: TurnView, number: int) -> Request:
    return Request(
        id=f"reply {number}",
        question=view.question,
        passages=tuple(_with_sentences(passage.text) for passage in view.passages),
        reply=_with_sentences(view.reply),
    )


def _with_sentences(text: str) -> Text:
    return Text(
        text=text, sentences=tuple((region.start, region.end) for region in split_spoken_sentences(text))
    )


async def _ask_all(session: Session, prompts: Sequence[PeerPrompt]) -> tuple[str, ...]:
    return tuple(
        await gather_all(
            session.text(each.step, [ChatMessage("user", each.prompt)], max_tokens=each.max_tokens)
            for each in prompts
        )
    )


def _read_text(place: ReplySpan, reply: str) -> str:
    return reply[place.start : place.end] if place.start is not None else str(place.text)

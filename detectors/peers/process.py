"""The worker process of a peer: its environment, and the messages that it exchanges with us.

A message is one JSON object a line; see docs/studies/peers.md. Other people wrote the worker's packages, so
every message of it is validated. Offsets are Unicode code points into the text they belong to, end exclusive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from hallulab.agents.machine.cache import locate_cache, silent
from hallulab.agents.machine.environments import is_made, python_environment
from hallulab.agents.machine.worker_process import LOADING_SECONDS, LOOP, WorkerError, WorkerProcess
from hallulab.agents.versions import digest_code
from hallulab.scenarios.transcript import Frozen

WORKERS = Path(__file__).with_name("workers")

_SHARED_WORKERS = {"factcg": "minicheck"}
"""Peer → the one whose worker it shares."""

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class Text(Frozen):
    """A text and where its sentences are, so that every peer judges the same sentences."""

    text: str
    sentences: tuple[tuple[int, int], ...]
    """Start and end of each sentence with words: a model's score of `---` is nothing but noise."""


class Request(Frozen):
    """One reply to judge."""

    id: str
    question: str
    """The question; empty if there is none."""
    passages: tuple[Text, ...]
    """The evidence; never empty."""
    reply: Text


class Ready(Frozen):
    """The worker has loaded its model."""

    ready: Literal[True]


class Fatal(Frozen):
    """The worker cannot work at all."""

    fatal: str


class ReplySpan(Frozen):
    """Something with a place in the reply, or without one."""

    start: int | None = Field(default=None, ge=0)
    """First character."""
    end: int | None = None
    """One past the last character."""
    text: str | None = None
    """Its text, if it has no place in the reply."""
    score: Share
    """Higher is worse."""

    @model_validator(mode="after")
    def _is_somewhere_or_something(self) -> Self:
        if (self.start is None) != (self.end is None) or (self.start is None and not self.text):
            raise ValueError("give start and end, or a text")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"[{self.start}, {self.end}) is empty")
        return self


class PeerUnit(ReplySpan):
    """One thing that was scored."""

    kind: Literal["claim", "sentence", "word"]
    details: dict[str, float | str | None] = Field(default_factory=dict)
    """Named intermediate values."""


class Judged(Frozen):
    """The verdict on a reply."""

    id: str
    score: Share
    """Score of the reply, higher is worse."""
    spans: tuple[ReplySpan, ...] | None
    """Flagged spans; None: the peer gives no places."""
    units: tuple[PeerUnit, ...]
    """Everything that was scored."""
    truncated: bool = False
    """True if evidence or reply did not fit into the model."""


class Abstained(Frozen):
    """There is nothing to judge."""

    id: str
    abstained: str


class Failed(Frozen):
    """This reply could not be judged; the next one may be."""

    id: str
    error: str


class PeerPrompt(Frozen):
    """A prompt for the served model, sent as one user message at temperature 0."""

    step: str = Field(pattern=r"^[a-z_]{1,30}$")
    """Its step: the second part of the call's purpose."""
    prompt: str
    max_tokens: int = Field(ge=1, le=2048)
    """Length limit of the answer."""


class Ask(Frozen):
    """The worker wants the served model's answers before it goes on."""

    id: str
    ask: tuple[PeerPrompt, ...]
    """To be answered in this order."""


class Answers(Frozen):
    """Our answer to `Ask`."""

    id: str
    answers: tuple[str, ...] | None = None
    """The model's answers; None: refused."""
    refused: str | None = None
    """Why there are none."""


Message = Ready | Fatal | Judged | Abstained | Failed | Ask

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


def read_message(line: bytes) -> Message:
    """Read a line of a worker.

    Raises:
        WorkerError: it is none of the messages.
    """
    try:
        return _MESSAGE.validate_json(line)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise WorkerError(f"its worker said {line[:120]!r}, which is no answer ({reason})") from error


_NEEDED = re.compile(
    r"(HF_TOKEN|HF_TOKEN_PATH|HUGGING_FACE_HUB_TOKEN)|(?!\w*(KEY|TOKEN|SECRET|PASSWORD))("
    r"PATH|HOME|USER|LOGNAME|TZ|LANG|LC_\w+|TMPDIR|TEMP|TMP|XDG_\w+|(LD|DYLD)_\w+"
    r"|(HTTPS?|ALL|NO)_PROXY|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HF|HUGGINGFACE|TRANSFORMERS|SAFETENSORS|NLTK|OMP|GOMP|KMP|MKL|OPENBLAS|MALLOC)_\w+"
    r"|(TORCH|PYTORCH|TRITON|CUDA|CUBLAS|CUDNN|NCCL|NVIDIA|HIP|HSA|ROCR|ROCM)_\w+)",
    re.IGNORECASE,
)
"""Variables that the peers' packages need: of the system, the network, the model hub, threads and
accelerators. The hub's token is among them, for restricted weights."""

Answerer = Callable[[Sequence[PeerPrompt]], tuple[str, ...]]
"""Lets the served model answer a worker's prompts."""


class PeerProcess(WorkerProcess):
    """A peer's worker process; after `load` it takes one request at a time.

    Raises:
        WorkerError: it does not start.
    """

    def __init__(self, command: Sequence[str]) -> None:
        super().__init__(command, _choose_environment())

    def load(self, configuration: Mapping[str, Any]) -> None:
        """Have the worker load its model.

        Raises:
            WorkerStopped: `stop` was called meanwhile.
            WorkerError: it cannot; the sentence says why, and the worker is gone.
        """
        self.send(configuration, LOADING_SECONDS)
        first = self._message(LOADING_SECONDS)
        if not isinstance(first, Ready):
            self.stop()
            reason = first.fatal if isinstance(first, Fatal) else "it judges before it is asked"
            raise WorkerError(f"its worker cannot load its model ({reason})")

    def judge(self, request: Request, answer: Answerer, timeout_s: float) -> Judged | Abstained | Failed:
        """Return the worker's verdict on a reply.

        Args:
            answer: called when the worker wants the served model's answers. Its exception is raised here,
                after the worker has heard of it.
            timeout_s: seconds without a message, or without taking ours, after which the worker is ended.

        Raises:
            WorkerStopped: `stop` was called meanwhile, or before.
            WorkerError: it ended, was silent for too long, or broke the protocol; it is gone then.
        """
        self.send(request.model_dump(), timeout_s)
        refusal: BaseException | None = None
        while True:
            message = self._message(timeout_s)
            if isinstance(message, Ready | Fatal) or message.id != request.id:
                self.stop()
                raise WorkerError(f"its worker answered out of turn ({type(message).__name__})")
            if not isinstance(message, Ask):
                if refusal is not None:
                    raise refusal
                return message
            try:
                answers = Answers(id=request.id, answers=answer(message.ask))
            except BaseException as error:  # noqa: BLE001 - kept, and raised when the worker knows
                refusal = error
                answers = Answers(id=request.id, refused=str(error))
            self.send(answers.model_dump(), timeout_s)

    def _message(self, timeout_s: float) -> Message:
        line = self.receive(timeout_s)
        try:
            return read_message(line)
        except WorkerError:
            self.stop()
            raise


def _choose_environment() -> dict[str, str]:
    """Return the part of our environment that other people's packages need, without any key of ours."""
    return {
        **{name: value for name, value in os.environ.items() if _NEEDED.fullmatch(name)},
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TOKENIZERS_PARALLELISM": "false",
    }


def read_peer_requirements(peer: str) -> tuple[str, ...]:
    """Return the pinned packages of a peer, `name==version`."""
    return _read_requirements()[peer]


def locate_peer_python(peer: str, *, cache: Path | None = None) -> Path:
    """Return the interpreter of a peer's environment; make it if there is no whole one.

    Peers with the same packages share one, named after the first of them.

    Raises:
        OperationalError: it cannot be made (pip's reason is given) or the disk is full.
    """
    pins = read_peer_requirements(peer)
    return python_environment(
        _locate_target(peer, cache or locate_cache()),
        "\n".join(pins),
        ["--only-binary=:all:", *pins],
        owner=peer,
        total=None,
        on_progress=silent,
    )


def is_installed(peer: str) -> bool:
    """Return whether a peer's environment is there already."""
    return is_made(_locate_target(peer, locate_cache()), "\n".join(read_peer_requirements(peer)))


def _locate_target(peer: str, cache: Path) -> Path:
    pins = read_peer_requirements(peer)
    shared = next(name for name, others in _read_requirements().items() if others == pins)
    return cache / "peers" / shared


@cache
def _read_requirements() -> Mapping[str, tuple[str, ...]]:
    text = files("hallulab.detectors.peers").joinpath("requirements.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, tuple[str, ...]]).validate_python(yaml.safe_load(text))


def build_worker_command(peer: str) -> list[str]:
    """Return the command that starts a peer's worker; make its environment if there is none.

    Raises:
        OperationalError: the environment cannot be made.
    """
    return [str(locate_peer_python(peer)), "-I", str(LOOP), str(_locate_worker(peer))]


def _locate_worker(peer: str) -> Path:
    return WORKERS / f"{_SHARED_WORKERS.get(peer, peer)}_worker.py"


def digest_programs(peer: str) -> list[str]:
    """Return the code of the programs that run in the peer's environment."""
    return [digest_code(path) for path in (LOOP, _locate_worker(peer))]

"""The files of waves in a run folder: what was asked, what came of it, and what is still to come.

A wave is three files: `wave-0001-input.jsonl` and `wave-0001-output.jsonl`, in OpenAI's batch format, and
`wave-0001.json`, which says to whom it went. The output is written in one step: one that is there is whole.
Wave 0 holds the answers to questions about the model, which were asked one by one before.

Requests are known by their content (`custom_id`), so a run that goes on finds its answers in these files.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from hallulab.agents.models.complaints import find_told_error, is_broken, read_complaint
from hallulab.agents.models.redaction import Redaction
from hallulab.agents.models.transport import LASTING_STATUS
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.atomic import write_atomically, write_lines
from hallulab.scenarios.files.json_text import digest, read_json
from hallulab.scenarios.files.opening import open_file, read_file
from hallulab.scenarios.transcript import Frozen

Service = Literal["vllm", "api"]
"""Who answers waves: a child process, `vllm run-batch`, or the batch API of an endpoint."""

CHAT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
"""Paths that requests of a batch ask for."""

NO_ANSWER = 500
"""HTTP status of a request that its batch leaves without one."""

_NAME = re.compile(r"wave-(\d{4,})(?:\.json|-(?:input|output|raw)\.jsonl)")


@dataclass(frozen=True)
class Asked:
    """A request."""

    url: str
    body: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Its identifier."""
        return digest([self.url, self.body])

    def line(self) -> str:
        """Return it as a line of a batch."""
        line = {"custom_id": self.id, "method": "POST", "url": CHAT, "body": self.body}
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class WaveResult:
    """Outcome of a request."""

    status: int
    body: dict[str, Any]

    @property
    def lasts(self) -> bool:
        """True if the same request need not be asked again."""
        if self.status < 400:
            return not is_broken(self.status, self.body, json.dumps(self.body))
        return self.status in LASTING_STATUS

    @classmethod
    def complaint(cls, message: str, status: int = NO_ANSWER) -> WaveResult:
        """Make the result of a request that has no answer."""
        return cls(status, {"error": {"message": message}})


class WaveState(Frozen):
    """To whom a wave went: the content of `wave-0001.json`."""

    service: Service
    base_url: str
    model: str
    requests: int
    token: str
    """Tells the wave from all others. The batch carries it, so it is found again if its identifier was not
    written any more."""
    batch: str | None = None
    """The batch's identifier at the API; None: it has none, or was not submitted yet."""


class Wave:
    """A wave that was written, and has no output yet.

    Args:
        folder: where its files are.
        state: to whom it goes.
        taken_up: whether an earlier process wrote it, and may have handed it over.
    """

    def __init__(
        self, folder: Path, number: int, state: WaveState, ids: Sequence[str], taken_up: bool = False
    ) -> None:
        name = f"wave-{number:04}"
        self.number = number
        self.state = state
        self.taken_up = taken_up
        self.ids = frozenset(ids)
        self.input = folder / f"{name}-input.jsonl"
        self.output = folder / f"{name}-output.jsonl"
        """Its results, once all are there."""
        self.raw = folder / f"{name}-raw.jsonl"
        """Its results as they come, perhaps not all."""
        self._state_file = folder / f"{name}.json"

    def note(self, batch: str | None = None) -> None:
        """Write to whom it went.

        Raises:
            OperationalError: it cannot be written.
        """
        self.state = self.state.model_copy(update={"batch": batch or self.state.batch})
        write_atomically(self._state_file, self.state.model_dump_json(indent=1) + "\n")

    def drop(self) -> None:
        """Delete its files: nothing will come of it."""
        for file in (self.raw, self._state_file, self.input):
            file.unlink(missing_ok=True)


class WaveStore:
    """The waves of a run, in a folder of their own.

    Args:
        folder: the folder; it is made when the first wave is written.
        fresh: whether what is there does not count, because it is going to be deleted.

    Raises:
        UsageError: a file is damaged, or a link.
    """

    def __init__(self, folder: Path, fresh: bool) -> None:
        self._folder = folder
        self._answers: dict[str, tuple[Path, int]] = {}
        """Requests with lasting results → file and place in it."""
        self._one_by_one: dict[str, WaveResult] = {}
        """Results of requests that were asked before the waves, until they are written."""
        self._last = 0
        self.open: list[Wave] = []
        """Waves that were handed to an API before this process began."""
        if not fresh and folder.is_dir():
            self._read()

    def _read(self) -> None:
        numbers = set()
        for file in self._folder.iterdir():
            named = _NAME.fullmatch(file.name)
            if named is None:
                continue
            if file.is_symlink():
                raise UsageError(f"{file}: a link, which is neither read nor written here. Delete it.")
            numbers.add(int(named[1]))
        self._last = max(numbers, default=0)
        for number in sorted(numbers):
            output = self._folder / f"wave-{number:04}-output.jsonl"
            if output.is_file():
                self._index(output)
            else:
                self._reopen(number)

    def _index(self, output: Path) -> None:
        for place, id, result in _read_results(output):
            if result.lasts:
                self._answers.setdefault(id, (output, place))

    def _reopen(self, number: int) -> None:
        """Take up a wave without output, if it may have gone to an API; else forget it."""
        state_file = self._folder / f"wave-{number:04}.json"
        wave_input = self._folder / f"wave-{number:04}-input.jsonl"
        try:
            state = WaveState.model_validate_json(read_file(state_file))
            with open_file(wave_input) as lines:
                ids = [json.loads(line)["custom_id"] for line in lines]
        except FileNotFoundError:
            state, ids = WaveState(service="vllm", base_url="", model="", requests=0, token=""), []
        except (ValidationError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UsageError(
                f"{state_file} or {wave_input.name} is damaged. Restore them, or delete them: then these "
                "requests are asked again."
            ) from error
        wave = Wave(self._folder, number, state, ids, taken_up=True)
        if state.service == "api":
            self.open.append(wave)
        else:
            wave.drop()  # the process died with ours

    def get(self, id: str) -> WaveResult | None:
        """Return what came of a request, if it is known and lasts."""
        if id in self._one_by_one:
            return self._one_by_one[id]
        if id not in self._answers:
            return None
        path, place = self._answers[id]
        with open_file(path) as file:
            file.seek(place)
            return _read_result(json.loads(file.readline()))

    def keep(self, id: str, result: WaveResult) -> None:
        """Keep the result of a request that was asked before the waves."""
        if result.lasts:
            self._one_by_one[id] = result

    def begin(self) -> None:
        """Write what was asked before the waves, because they begin now.

        Raises:
            OperationalError: it cannot be written.
        """
        if not self._one_by_one:
            return
        output = self._folder / "wave-0000-output.jsonl"
        known = [line for _, _, line in _read_lines(output)] if output.is_file() else []
        new = [
            {"custom_id": id, "response": {"status_code": result.status, "body": result.body}}
            for id, result in self._one_by_one.items()
        ]
        write_lines(output, (json.dumps(line, ensure_ascii=False) for line in [*known, *new]))
        self._one_by_one.clear()
        self._index(output)

    def write(self, service: Service, base_url: str, requests: Sequence[Asked]) -> Wave:
        """Write a new wave of requests to one model.

        Raises:
            OperationalError: it cannot be written.
        """
        self._last += 1
        model = str(requests[0].body.get("model"))
        state = WaveState(
            service=service, base_url=base_url, model=model, requests=len(requests), token=uuid.uuid4().hex
        )
        wave = Wave(self._folder, self._last, state, [request.id for request in requests])
        write_lines(wave.input, (request.line() for request in requests))
        wave.note()
        return wave

    def close(self, wave: Wave, redaction: Redaction) -> Iterator[tuple[str, WaveResult]]:
        """Write the output of a wave from its raw results, and yield each request with its result.

        A line that is no result of a request of the wave counts as nothing. So does one of a request that has
        a lasting result already.

        Args:
            wave: a wave whose raw results are there.

        Raises:
            OperationalError: it cannot be written.
        """
        write_lines(wave.output, _make_safe(wave, redaction))
        wave.raw.unlink(missing_ok=True)
        if wave in self.open:
            self.open.remove(wave)
        for place, id, result in _read_results(wave.output):
            if result.lasts:
                self._answers.setdefault(id, (wave.output, place))
            yield id, result


def clear_waves(folder: Path) -> None:
    """Delete the files of waves in a folder, and the folder if nothing else is in it."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for file in folder.iterdir():
        if _NAME.fullmatch(file.name):
            file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _make_safe(wave: Wave, redaction: Redaction) -> Iterator[str]:
    """Yield the lines of raw results without keys, one for each request."""
    found: set[str] = set()
    with open_file(wave.raw) as raw:
        for data in raw:
            text = data.decode(errors="replace")
            try:
                line = redaction.value(read_json(text, redaction.text))
            except ValueError:
                continue
            id = line.get("custom_id") if isinstance(line, dict) else None
            if isinstance(id, str) and id in wave.ids and id not in found:
                found.add(id)
                yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _read_lines(output: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the place of each line of an output, its request and the line."""
    place = 0
    with open_file(output) as file:
        for number, text in enumerate(file, start=1):
            try:
                line = json.loads(text)
                yield place, str(line["custom_id"]), line
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise UsageError(
                    f"{output}, line {number}: no result of a request. Restore the file, or delete it: then "
                    "its requests are asked again."
                ) from error
            place += len(text)


def _read_results(output: Path) -> Iterator[tuple[int, str, WaveResult]]:
    for place, id, line in _read_lines(output):
        yield place, id, _read_result(line)


def _read_result(line: Mapping[str, Any]) -> WaveResult:
    """Return the result that a line of a batch's output tells.

    vLLM tells a complaint in `error` alone, APIs in the body of the response, perhaps with status 200; and in
    `error` if there was no response.
    """
    response, told = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        response = {}
    status, body = response.get("status_code"), response.get("body")
    if not isinstance(status, int) or not 100 <= status <= 599:
        status = NO_ANSWER
    if isinstance(body, dict):
        error = find_told_error(body) if status < 400 else None
        if error is None:
            return WaveResult(status, body)
        return WaveResult(error.status or NO_ANSWER, dict(error.body))
    if isinstance(told, dict) and not body:
        complaint = told if "error" in told else {"error": told}
    else:
        words = read_complaint(body) or read_complaint(told) or "the batch gave no answer"
        complaint = {"error": {"message": words}}
    return WaveResult(status if status >= 400 else NO_ANSWER, complaint)

"""A worker process: the protocol, its failures, and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.machine.worker_process import LOOP, WorkerError, WorkerStopped
from hallulab.detectors.peers.process import (
    Abstained,
    Failed,
    Judged,
    PeerProcess,
    PeerPrompt,
    Request,
    Text,
    read_message,
)
from tests.places import ROOT

FAKE = Path(__file__).with_name("fake_worker.py")
FRAME = [sys.executable, "-I", str(LOOP), str(FAKE)]


@contextmanager
def running(command: Sequence[str] = FRAME) -> Iterator[PeerProcess]:
    worker = PeerProcess(command)
    try:
        worker.load({"weights": "some"})
        yield worker
    finally:
        worker.stop()


@pytest.fixture(scope="module")
def shared() -> Iterator[PeerProcess]:
    """A worker for the tests after which it goes on."""
    with running() as worker:
        yield worker


def script(body: str) -> list[str]:
    """A worker that is ready, reads one request, and then does `body`."""
    program = "import json, os, sys, time\ninput(); print('{\"ready\": true}', flush=True)\nasked = input()\n"
    return [sys.executable, "-I", "-c", program + textwrap.dedent(body)]


def request(reply: str, id: str = "1") -> Request:
    return Request(
        id=id,
        question="When?",
        passages=(Text(text="The pool opens at 6.", sentences=((0, 20),)),),
        reply=Text(text=reply, sentences=((0, len(reply)),)),
    )


def nobody(prompts: Sequence[PeerPrompt]) -> tuple[str, ...]:
    raise AssertionError("no model is asked")


def test_replies_are_judged_one_after_the_other_whatever_packages_print(shared: PeerProcess) -> None:
    for id in ("1", "2"):
        said = shared.judge(request("Fine größer 🏊 \ud800.", id), nobody, 120)
        assert isinstance(said, Judged)
        assert (said.id, said.score, said.spans and said.spans[0].end) == (id, 0.75, 16)


def test_what_a_reply_raises_is_of_that_reply_only(shared: PeerProcess) -> None:
    assert shared.judge(request("Raise"), nobody, 120) == Failed(id="1", error="ValueError: too long")
    assert isinstance(shared.judge(request("Fine"), nobody, 120), Judged)


def test_the_served_models_answers_come_through_us(shared: PeerProcess) -> None:
    asked: list[PeerPrompt] = []

    def answer(prompts: Sequence[PeerPrompt]) -> tuple[str, ...]:
        asked.extend(prompts)
        return ("one", "two")

    said = shared.judge(request("Ask_model"), answer, 20)
    assert isinstance(said, Judged)
    assert said.units[0].text == "one two"
    assert asked == [PeerPrompt(step="extract", prompt=text, max_tokens=9) for text in ("a", "b")]


def test_what_asking_the_model_raises_is_raised_and_the_worker_goes_on(shared: PeerProcess) -> None:
    def refuse(prompts: Sequence[PeerPrompt]) -> tuple[str, ...]:
        raise KeyError("no model")

    with pytest.raises(KeyError, match="no model"):
        shared.judge(request("Ask_model"), refuse, 20)
    assert isinstance(shared.judge(request("Fine", "2"), nobody, 120), Judged)


def test_the_worker_gets_what_its_packages_read_and_no_other_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.environ", {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "THEIRS": "s1"})
    for name, value in {
        "OPENAI_API_KEY": "s2",
        "AWS_SECRET_ACCESS_KEY": "s3",
        "NVIDIA_API_KEY": "s4",
        "HF_TOKEN": "gated",
        "HF_HOME": "/hub",
        "CUDA_VISIBLE_DEVICES": "0",
        "https_proxy": "http://proxy",
        "HOMEBREW_PREFIX": "s5",
    }.items():
        os.environ[name] = value
    body = "print(json.dumps({'id': '1', 'abstained': json.dumps(dict(os.environ))}), flush=True)"
    with running(script(body)) as worker:
        said = worker.judge(request("Fine"), nobody, 120)
    assert isinstance(said, Abstained)
    given = json.loads(said.abstained)
    assert {name: value for name, value in given.items() if name in os.environ} == {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "HF_TOKEN": "gated",
        "HF_HOME": "/hub",
        "CUDA_VISIBLE_DEVICES": "0",
        "https_proxy": "http://proxy",
    }


def test_a_worker_that_stops_reading_is_ended() -> None:
    ready = "import time; input(); print('{\"ready\": true}', flush=True); time.sleep(60)"
    with running([sys.executable, "-I", "-c", ready]) as worker:
        with pytest.raises(WorkerError, match=r"^its worker read nothing for 0\.5 seconds and was ended$"):
            worker.judge(request("word " * 100_000), nobody, 0.5)
        assert worker._process.poll() is not None


def test_a_worker_that_never_stops_talking_loses_its_listener() -> None:
    said = "{'id': '1', 'abstained': 'x'}"
    with running(script(f"while True: print(json.dumps({said}), flush=True)")) as worker:
        assert worker.judge(request("Fine"), nobody, 120) == Abstained(id="1", abstained="x")
        worker._process.wait(120)
        assert worker._lines.qsize() <= 4 + 1


def test_the_last_words_of_a_long_complaint_are_told() -> None:
    body = "sys.stderr.write('e' * 5_000_000 + '\\nno memory\\n'); sys.exit(1)"
    with (
        running(script(body)) as worker,
        pytest.raises(WorkerError, match=r"^its worker ended with exit code 1 \(no memory\)$"),
    ):
        worker.judge(request("Fine"), nobody, 120)


def test_a_worker_that_we_stop_says_so_while_it_loads() -> None:
    worker = PeerProcess([sys.executable, "-I", "-c", "import time; time.sleep(60)"])
    threading.Timer(0.2, worker.stop).start()
    with pytest.raises(WorkerStopped, match=r"^its worker was ended$"):
        worker.load({})
    assert worker.stopped


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("print('x', file=sys.stderr); sys.exit(3)", r"^its worker ended with exit code 3 \(x\)$"),
        ("os.kill(os.getpid(), 9)", "^its worker was ended by the signal SIGKILL$"),
        ("print('not json', flush=True); time.sleep(60)", "said b'not json.n', which is no answer"),
        ("print(json.dumps({'id': '1'}), flush=True); time.sleep(60)", "which is no answer"),
        (
            "print(json.dumps({'id': '0', 'error': 'late'}), flush=True); time.sleep(60)",
            r"answered out of turn \(Failed\)",
        ),
        ("time.sleep(60)", "^its worker was silent for 0.5 seconds and was ended$"),
    ],
    ids=["exit", "killed", "no json", "no answer", "another reply", "silence"],
)
def test_a_worker_that_fails_is_ended_and_named(body: str, sentence: str) -> None:
    with running(script(body)) as worker:
        with pytest.raises(WorkerError, match=sentence):
            worker.judge(request("Fine"), nobody, 0.5 if "silent" in sentence else 20)
        assert worker._process.poll() is not None


def test_a_worker_that_cannot_load_says_why_on_one_line() -> None:
    worker = PeerProcess(FRAME)
    with pytest.raises(WorkerError, match=r"cannot load its model \(OSError: no/model is nowhere\)$"):
        worker.load({"weights": "no/model"})


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(WorkerError, match=r"\(cannot start /no/python: No such file or directory\)"):
        PeerProcess(["/no/python"]).load({})


def test_a_computing_worker_ends_when_our_process_is_killed() -> None:
    program = """
        import sys
        from tests.detectors.peers.test_process import nobody, request, running
        with running() as worker:
            print(worker._process._process.pid, flush=True)
            worker.judge(request("Sleep"), nobody, 600)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    root = ROOT
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root) as ours:
        assert ours.stdout is not None
        worker = Path(f"/proc/{int(ours.stdout.readline())}/cmdline")
        _wait(lambda: worker.exists() and FAKE.name in worker.read_text())
        ours.send_signal(signal.SIGKILL)
    _wait(lambda: not worker.exists() or not worker.read_text())


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": float("nan")},
        {"score": 1.5},
        {"spans": [{"start": 3, "end": 3, "score": 1.0}]},
        {"spans": [{"start": 3, "score": 1.0}]},
        {"spans": [{"score": 1.0}]},
        {"units": [{"kind": "novel", "start": 0, "end": 1, "score": 1.0}]},
        {"more": 1},
    ],
)
def test_an_answer_is_validated(wrong: dict[str, Any]) -> None:
    right = {"id": "1", "score": 0.5, "spans": [], "units": []}
    assert isinstance(read_message(json.dumps(right).encode()), Judged)
    with pytest.raises(WorkerError, match="no answer"):
        read_message(json.dumps({**right, **wrong}).encode())

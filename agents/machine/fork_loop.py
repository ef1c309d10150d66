"""Prepare a worker once and fork it whenever a fresh one is wanted. Needs the standard library only; Linux.

    python fork_loop.py worker_loop.py WORKER.py

Runs as a script on Python 3.9 and later. `WORKER.py` is as `worker_loop.py` says, and has a function
`prepare(configuration)` that imports what every worker needs. Standard input is a socket of packets:

| from | packet |
|---|---|
| us, first | the configuration, JSON |
| the script, on standard output | `{"ready": true, "shares": ["what", …]}`, or `{"fatal": "why"}` |
| us, at most once | `{"imports": ["module", …]}`: what a worker has imported since, and all will |
| us, for each fresh worker | a byte, with four descriptors: for its input, output and errors, and a socket |

The fresh worker goes on in `worker_loop.py` as if it had been started by itself. The script plays the
supervisor's part (`supervisor.py`): when the other end of that socket closes, or the worker ends, it ends all
the worker's descendants, and writes the exit code to the socket. A worker adopts those of its descendants
that lose their parent, so that whom the script has adopted is left of a worker that has ended.

`shares` names what forks would share though each process must have its own. If there is any, nothing is
forked, and the script ends.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LONGEST_PACKET = 1 << 16
"""Bytes of the configuration at most."""
LEAVING_SECONDS = 0.1
"""Time for the system to be done with a thread that has ended."""
_NAMES_COME_FROM: list[tuple[Any, str]] = [(os, "urandom"), (random, "_urandom"), (os, "getpid")]
STANDARD_LIBRARY = os.path.dirname(os.__file__)
_LIBC = ctypes.CDLL(None, use_errno=True)
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(loop: str, worker: str) -> None:
    """Prepare the worker, and fork it whenever asked."""
    asked = socket.socket(fileno=os.dup(0))
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.path[:] = [folder for folder in sys.path if folder != os.path.dirname(os.path.abspath(__file__))]
    del sys.argv[1:]
    frame = _load("hallulab_worker_loop", loop)
    sys.modules["__main__"] = frame  # where workers look for it
    prepare = _load("hallulab_worker", worker).prepare
    configuration = json.loads(asked.recv(LONGEST_PACKET))
    stock = Stock()
    gc.disable()  # nearly all that an import makes stays, and is looked through for nothing
    try:
        with stock.watching_names():
            prepare(configuration)
    except BaseException as error:  # noqa: BLE001 - our process must learn of any error
        print(json.dumps({"fatal": getattr(error, "sentence", None) or frame.reason_of(error)}), file=told)
        told.close()
        return
    shares = stock.list_shared()
    if shares:
        gc.collect()  # garbage may hold them
        shares = stock.list_shared()
    print(json.dumps({"ready": True, "shares": shares}), file=told, flush=True)
    if shares:
        return
    gc.freeze()  # a fork that collects garbage would else copy all that the import made
    gc.enable()
    _set_of_linux(PR_SET_CHILD_SUBREAPER, 1)
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in _STOPS}
    living = _Living()
    above = os.getpid()
    while True:
        living.wait_for(asked.fileno())
        packet, given, _, _ = socket.recv_fds(asked, LONGEST_PACKET, 4)
        if packet.startswith(b"{"):
            _import_all(json.loads(packet)["imports"])
            continue
        if len(given) < 4:
            return
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the worker may have put anything there
                stream.flush()
        made = None
        with contextlib.suppress(OSError):  # without a fork, the descriptors close, which tells it
            made = os.fork()
        if made == 0:
            for number, handler in kept.items():
                signal.signal(number, handler)
            asked.close()
            told.close()
            living.close()
            _start_worker(given, above, frame, worker)
        for each in given[:3]:
            os.close(each)
        if made is None:
            os.close(given[3])
        else:
            living.add(made, given[3])


def _import_all(names: list[str]) -> None:
    """Import modules, if a fork shows that this leaves nothing that forks would share."""

    def import_here() -> None:
        for name in names:
            with contextlib.suppress(Exception):  # whoever needs it learns of that
                importlib.import_module(name)

    tried = os.fork()
    if tried == 0:
        code = 1
        with contextlib.suppress(BaseException):
            stock = Stock()
            import_here()
            code = 1 if stock.list_shared() else 0
        os._exit(code)
    if os.waitpid(tried, 0)[1] == 0:
        import_here()
        gc.collect()
        gc.freeze()


class Stock:
    """List the threads and connections that forks would share."""

    def __init__(self) -> None:
        self._before = _take_stock()
        self._draws_names = False

    @contextlib.contextmanager
    def watching_names(self) -> Any:
        """Notice whether files that are no library's ask for random bytes or the process's number.

        These make names, such as that of a session. Libraries do the same for their own purposes.
        """
        kept = [(owner, name, getattr(owner, name)) for owner, name in _NAMES_COME_FROM]
        for owner, name, function in kept:
            setattr(owner, name, self._watch(function))
        try:
            yield
        finally:
            for owner, name, function in kept:
                setattr(owner, name, function)

    def _watch(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self._draws_names |= _is_of_no_library(sys._getframe(1))
            return function(*arguments)

        return watched

    def list_shared(self) -> list[str]:
        """Return what has come since this object was made."""
        found = [name for name, now in _take_stock().items() if now != self._before[name]]
        if self._draws_names:
            found.append("a name of its own")
        try:
            os.close(os.pidfd_open(os.getpid()))
        except (AttributeError, OSError):  # the system cannot supervise a fork
            found.append("no way to see its end")
        return found


def _take_stock() -> dict[str, object]:
    open_files = set()
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the folder itself
            open_files.add((descriptor, os.readlink(f"/proc/self/fd/{descriptor}")))
    children = False
    with contextlib.suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        children = True
    return {
        "a thread": _count_threads(),
        "an open file or connection": open_files,
        "a process": children,
        "random numbers": (random.getstate(), "numpy.random" in sys.modules, "torch" in sys.modules),
        "a temporary folder": len(weakref.finalize._registry),  # type: ignore[attr-defined]
    }


def _count_threads() -> int:
    """Return how many threads there are. One that Python knows no more may take a moment to be gone."""
    ends = time.monotonic() + LEAVING_SECONDS
    while (
        found := len(os.listdir("/proc/self/task"))
    ) > threading.active_count() and time.monotonic() < ends:
        time.sleep(0.001)
    return found


def _is_of_no_library(frame: FrameType | None) -> bool:
    """Return whether the nearest code outside Python's own belongs to no installed package."""
    while frame is not None:
        file = frame.f_code.co_filename
        installed = "site-packages" in file or "dist-packages" in file
        if installed or not (file.startswith((STANDARD_LIBRARY, "<")) or file == __file__):
            return not installed
        frame = frame.f_back
    return False


class _Living:
    """The workers that have not ended, each with its socket, and a descriptor that can be read at its end."""

    def __init__(self) -> None:
        self._sockets: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    def add(self, worker: int, alive: int) -> None:
        """Add a worker that was forked just now."""
        self._sockets[worker], self._ends[worker] = alive, os.pidfd_open(worker)

    def wait_for(self, asked: int) -> None:
        """Wait for a packet; end the unwanted workers meanwhile, and what ended ones have started."""
        unwanted: set[int] = set()
        while True:
            waiting = select.poll()  # `select` knows no descriptor above 1,023
            waiting.register(asked, select.POLLIN)
            for worker, end in self._ends.items():
                waiting.register(end, select.POLLIN)
                if worker not in unwanted:
                    waiting.register(self._sockets[worker], select.POLLIN)
            ready = {descriptor for descriptor, _ in waiting.poll()}
            for worker in [one for one, end in self._ends.items() if end in ready]:
                self._bury(worker)
            for worker in [one for one, alive in self._sockets.items() if alive in ready]:
                unwanted.add(worker)
                os.kill(worker, signal.SIGKILL)  # it is our child, so its number is its own until we reap it
            if asked in ready:
                return

    def _bury(self, worker: int) -> None:
        """Reap a worker that has ended, end its descendants, and tell its exit code."""
        alive, end = self._sockets.pop(worker), self._ends.pop(worker)
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        while left := self._list_adopted():
            for process in left:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
        with contextlib.suppress(OSError):  # nobody may want to know
            os.write(alive, str(code if code >= 0 else 128 - code).encode())
        os.close(alive)
        os.close(end)

    def _list_adopted(self) -> list[int]:
        """Return our children that are no workers: they have lost their parent, a worker that has ended."""
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            return [child for child in map(int, children.read().split()) if child not in self._ends]

    def close(self) -> None:
        """Close what a new worker must not have."""
        for descriptor in (*self._sockets.values(), *self._ends.values()):
            os.close(descriptor)


def _start_worker(given: list[int], above: int, frame: ModuleType, worker: str) -> NoReturn:
    """Be the worker, in a new process under `above`."""
    os.close(given[3])
    os.setsid()
    _set_of_linux(PR_SET_CHILD_SUBREAPER, 1)
    _set_of_linux(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != above:
        os._exit(1)
    for place, descriptor in enumerate(given[:3]):
        os.dup2(descriptor, place)
        os.close(descriptor)
    frame.main(worker)
    # End as programs do, but without taking all modules apart, which takes longer than a short talk.
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the worker may have put anything there
            stream.flush()
    os._exit(0)


def _set_of_linux(option: int, value: int) -> None:
    """Set an option of this process (`prctl`): who adopts orphans, or what it gets when its parent ends."""
    _LIBC.prctl(option, value, 0, 0, 0)


def _load(name: str, path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

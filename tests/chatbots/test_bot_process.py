"""Users' bots in their own processes: what they see, how they fail, and their end."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.machine.forked_workers import FORK_LOOP
from hallulab.agents.machine.worker_process import LOOP
from hallulab.chatbots.bot_process import WORKER
from hallulab.chatbots.protocol import Chatbot
from hallulab.chatbots.registry import make_chatbot
from hallulab.scenarios.errors import UsageError
from hallulab.simulator.records.experiment import Component
from hallulab.simulator.records.folder import RunFolder
from tests.chatbots.stage import ASKED, stage
from tests.simulator.engine.cast import execute
from tests.simulator.engine.test_execution import Listener, cast, job

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(textwrap.dedent(text), encoding="utf-8")


def made(target: str = "my_bot:reply", timeout_s: float = 60, **options: Any) -> Chatbot:
    context, _, _ = stage(options={"target": target, **options})
    context.models.timeout_s = timeout_s
    return make_chatbot("callable", context)


async def said(bot: Chatbot) -> str:
    return (await bot.reply(ASKED)).text


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(process: str) -> bool:
    try:
        return Path(f"/proc/{int(process)}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def noted(name: str) -> str:
    """What a bot wrote into a file, or nothing."""
    return Path(name).read_text() if Path(name).exists() else ""


@pytest.mark.parametrize("inits", [False, True], ids=["folders", "packages"])
async def test_a_project_has_packages_called_as_ours(inits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for package in ("agents", "scenarios", "tests"):
        write(f"{package}/helper.py", f"NAME = 'my {package}'")
        if inits:
            write(f"{package}/__init__.py", "")
    write(
        "my_bot.py",
        """
        from agents.helper import NAME as one
        from scenarios.helper import NAME as two
        def reply(history):
            from tests.helper import NAME as three
            return f"{one}, {two}, {three}"
        """,
    )
    assert await said(made()) == "my agents, my scenarios, my tests"


async def test_hallulabs_packages_are_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    write("my_bot.py", "import detectors\ndef reply(history): return 'x'")
    with pytest.raises(UsageError, match=r"\(ModuleNotFoundError: No module named 'detectors'\)\.$"):
        made()


def test_a_bot_runs_in_another_python_environment() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "theirs"], check=True)
    site = next(Path("theirs/lib").glob("python3*")) / "site-packages"
    write(f"{site}/only_theirs.py", "WORD = 'theirs'")
    write("my_bot.py", "from only_theirs import WORD\ndef reply(history): return WORD")
    assert asyncio.run(said(made(python="theirs/bin/python"))) == "theirs"
    with pytest.raises(UsageError, match="No module named 'only_theirs'"):
        made()


def test_a_python_that_is_none_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^chatbot callable: option `python`: /.*/no/python is no program;"):
        made(python="no/python")


async def test_what_a_bot_keeps_is_of_its_conversation() -> None:
    write(
        "my_bot.py",
        """
        class Bot:
            def __init__(self):
                self.asked = 0
            async def __call__(self, history):
                self.asked += 1
                return f"reply {self.asked}"
        reply = Bot()
        """,
    )
    one, other = made(), made()
    assert [await said(one), await said(one), await said(other)] == ["reply 1", "reply 2", "reply 1"]


async def test_conversations_are_held_at_the_same_time() -> None:
    write(
        "my_bot.py",
        """
        import os, pathlib, time
        def reply(history):
            pathlib.Path(f"{os.getpid()}.here").touch()
            while len(list(pathlib.Path().glob("*.here"))) < 2:
                time.sleep(0.01)
            return "met"
        """,
    )
    assert await asyncio.gather(said(made()), said(made())) == ["met", "met"]


async def test_an_event_loop_is_the_same_for_all_replies() -> None:
    write(
        "my_bot.py",
        """
        import asyncio
        inbox = None
        async def reply(history):
            global inbox
            inbox = inbox or asyncio.get_running_loop().create_future()
            if not inbox.done():
                inbox.set_result("still here")
            return await inbox
        """,
    )
    bot = made()
    assert [await said(bot), await said(bot)] == ["still here", "still here"]


async def test_what_a_bot_prints_and_asks_of_a_terminal_is_no_part_of_the_protocol() -> None:
    write(
        "my_bot.py",
        """
        import os, subprocess, sys
        print("on import")
        def reply(history):
            print('{"id": "0", "answer": "forged"}', flush=True)
            os.write(1, b"raw")
            print("x" * 1_000_000, file=sys.stderr)
            subprocess.run(["echo", "of a child"])
            try:
                return input()
            except EOFError:
                return "nobody types"
        """,
    )
    assert await said(made()) == "nobody types"


FAILING = """
    import os, signal, sys, ctypes
    def exits(history): os._exit(3)
    def complains(history): print("no water", file=sys.stderr, flush=True); os._exit(4)
    def crashes(history): os.kill(os.getpid(), signal.SIGSEGV)
    def floods(history): return "x" * 17_000_000
    def number(history): return 3
    def binary(history): return b"It opens at 7."
    def circle(history):
        found = []
        found.append(found)
        return {"reply": "x", "passages": found}
    def garbles(history):
        for line in range(3, 20):
            try:
                os.write(line, b"garbage\\n")
            except OSError:
                pass
        return "x"
    def leaks(history): raise RuntimeError("a" * 290 + os.environ["MY_API_KEY"])
"""


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("exits", "my_bot:exits: its worker ended with exit code 3."),
        ("complains", "my_bot:complains: its worker ended with exit code 4 (no water)."),
        ("crashes", "my_bot:crashes: its worker was ended by the signal SIGSEGV."),
        ("floods", "my_bot:floods: its worker said more than 16 MiB at once and was ended."),
        ("number", 'my_bot:number returned 3, not a text or {"reply": text, "passages": […]}.'),
        (
            "binary",
            'my_bot:binary returned b\'It opens at 7.\', not a text or {"reply": text, "passages": […]}.',
        ),
        ("circle", "my_bot:circle raised RecursionError: maximum recursion depth exceeded"),
        ("garbles", "my_bot:garbles: its worker said 'garbage\\n', which is no answer."),
        ("leaks", f"my_bot:leaks raised RuntimeError: {'a' * 290}[key]"),
    ],
)
async def test_whatever_a_bot_does_ends_its_conversation_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, reason: str
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789")
    write("my_bot.py", FAILING)
    write("other_bot.py", "def reply(history): return f'Answer after {len(history)} messages.'")
    bots = {"a": made(f"my_bot:{attribute}"), "b": made("other_bot:reply")}
    people = cast(build_chatbot=lambda chosen, seed, conversation: bots[chosen.name])
    folder = RunFolder(tmp_path / "run")
    (tmp_path / "run").mkdir()
    jobs = [replace(job(name), chatbot=Component(name=name, kind="bot")) for name in bots]
    await execute(people, jobs, folder, Listener())
    held = {line.id: line for line in folder.read_conversations()}
    assert str(held["a"].error).startswith(f"chatbot bot: {reason}")
    assert (held["b"].error, len(held["b"].turns)) == (None, 2)


def test_a_bot_that_sleeps_for_ever_costs_one_time_limit(tmp_path: Path) -> None:
    write(
        "my_bot.py",
        """
        import os, pathlib, time
        pathlib.Path(f"{os.getpid()}.started").touch()
        def sleeps(history): time.sleep(600)
        def answers(history): return f"Answer after {len(history)} messages."
        """,
    )
    limits = {"sleeps": 0.5, "answers": 60.0}
    (tmp_path / "run").mkdir()
    folder = RunFolder(tmp_path / "run")
    people = cast(
        build_chatbot=lambda chosen, seed, conversation: made(f"my_bot:{chosen.name}", limits[chosen.name]),
        concurrency=1,
    )
    jobs = [replace(job(name), chatbot=Component(name=name, kind="bot")) for name in limits]
    asyncio.run(execute(people, jobs, folder, Listener()))
    held = folder.read_conversations()
    assert [(len(line.turns), line.error) for line in held] == [
        (0, "chatbot bot: my_bot:sleeps gave no reply within 0.5 s (--timeout)."),
        (2, None),
    ]
    started = [path.stem for path in Path().glob("*.started")]
    assert len(started) == 4  # each bot for the check and for its conversation: none is asked again
    wait(lambda: not any(map(is_running, started)))


TELLING = """
    import atexit, os, pathlib, subprocess, sys, time
    pathlib.Path("ended").unlink(missing_ok=True)
    atexit.register(lambda: pathlib.Path("ended").write_text("so it is"))
    def reply(history):
        child = subprocess.Popen(["sleep", "600"])
        return f"{os.getpid()} {child.pid}"
    def sleeps(history):
        pathlib.Path("asleep").write_text(reply(history))
        time.sleep(600)
"""


async def test_a_worker_ends_with_its_conversation_as_programs_do() -> None:
    write("my_bot.py", TELLING)
    bot = made()
    mine, child = (await said(bot)).split()
    assert is_running(mine)
    del bot
    wait(lambda: not is_running(mine) and not is_running(child))
    assert noted("ended") == "so it is"


async def test_a_reply_that_nobody_waits_for_is_no_longer_made() -> None:
    write("my_bot.py", TELLING)
    asked = asyncio.create_task(said(made("my_bot:sleeps")))
    await asyncio.to_thread(wait, lambda: noted("asleep") != "")
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    mine, child = noted("asleep").split()
    wait(lambda: not is_running(mine) and not is_running(child))


def test_no_worker_outlives_us() -> None:
    write("my_bot.py", TELLING)
    program = """
        import asyncio
        from hallulab.chatbots.registry import make_chatbot
        from tests.chatbots.stage import ASKED, stage
        context, _, _ = stage(options={"target": "my_bot:sleeps"})
        asyncio.run(make_chatbot("callable", context).reply(ASKED))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as ours:
        wait(lambda: noted("asleep") != "")
        ours.send_signal(signal.SIGKILL)
    mine, child = noted("asleep").split()
    wait(lambda: not is_running(mine) and not is_running(child))


@pytest.mark.parametrize("program", [LOOP, FORK_LOOP, WORKER], ids=["frame", "forks", "bot"])
def test_what_runs_in_the_bots_python_needs_3_9_and_the_standard_library(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"), feature_version=(3, 9))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name.split(".")[0] for name in modules} <= sys.stdlib_module_names | {"__main__"}

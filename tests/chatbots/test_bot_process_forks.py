"""Bots whose conversations are forks of one process that has imported them, and those that cannot be."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hallulab.chatbots.protocol import Chatbot, ChatbotContext
from hallulab.chatbots.registry import make_chatbot
from tests.chatbots.stage import stage
from tests.chatbots.test_bot_process import is_running, noted, said, wait, write


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_of(target: str = "my_bot:reply") -> ChatbotContext:
    """What the bots of one run share."""
    context, _, _ = stage(options={"target": target})
    return context


def made(context: ChatbotContext, kind: str = "callable") -> Chatbot:
    return make_chatbot(kind, context)


COUNTS = """
    import os
    with open("imports", "a") as file:
        file.write("x")
    asked = 0
    def reply(history):
        global asked
        asked += 1
        return f"{asked}"
"""


async def test_a_run_imports_a_bot_once_and_each_conversation_has_its_own_state() -> None:
    write("my_bot.py", COUNTS)
    run = run_of()
    one, other = made(run), made(run)
    assert [await said(one), await said(one), await said(other)] == ["1", "2", "1"]
    assert noted("imports") == "x"


async def test_a_later_run_finds_a_bot_as_its_file_is_then() -> None:
    write("my_bot.py", "def reply(history): return 'old'")
    assert await said(made(run_of())) == "old"
    write("my_bot.py", "def reply(history): return 'new'")
    assert await said(made(run_of())) == "new"


@pytest.mark.parametrize(
    "does",
    [
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "held = open('imports')",
        "loop = asyncio.new_event_loop()",
        "child = subprocess.Popen(['sleep', '600'])",
        "random.seed(7)",
        "folder = tempfile.TemporaryDirectory()",
        "session = uuid.uuid4()",
        "session = secrets.token_hex()",
        "session = os.getpid()",
    ],
)
async def test_what_a_fork_would_share_each_process_makes_by_itself(does: str) -> None:
    imported = "import asyncio, os, random, secrets, subprocess, tempfile, threading, time, uuid"
    write("my_bot.py", f"{imported}\nopen('imports', 'a').write('x')\n{does}\ndef reply(history): return 'x'")
    run = run_of()
    assert [await said(made(run)), await said(made(run))] == ["x", "x"]
    assert noted("imports") == "xxx"  # to see what it does, and in each conversation


async def test_what_libraries_do_for_themselves_does_not_count() -> None:
    write("lib/site-packages/library.py", "import os, uuid\nmine = uuid.uuid4(), os.getpid()")
    write("lib/site-packages/openers.py", "open(__file__).close()")
    write("my_bot.py", "import sys\nsys.path.append('lib/site-packages')\nimport library, openers" + TELLS)
    run = run_of()
    assert [await said(made(run)), await said(made(run))] == ["x", "x"]
    assert noted("imports") == "x"


@pytest.mark.parametrize("imports", ["from openai import AsyncOpenAI", ""])
async def test_forks_find_the_types_and_the_network_of_the_openai_client_built(imports: str) -> None:
    late = "from openai.types.chat import ChatCompletion"
    found = "connects and ChatCompletion.__pydantic_complete__"
    reply = f"""import sys
def reply(history):
    connects = "anyio._backends._asyncio" in sys.modules
    {late}
    return str({found})
"""
    write("my_bot.py", f"{imports}\nopen('imports', 'a').write('x')\n{reply}")
    run = run_of()
    assert await said(made(run)) == str(bool(imports))
    assert noted("imports") == "x"


TRACED = """
    from openai import AsyncOpenAI
    from openai.resources.chat.completions import AsyncCompletions
    async def create(self, **given):
        open("traced", "a").write("x")
    AsyncCompletions.create = create
    def reply(history): return "x"
"""


async def test_warming_the_client_calls_nothing_that_a_tracer_replaces() -> None:
    write("my_bot.py", TRACED)
    assert await said(made(run_of())) == "x"
    assert "traced" not in os.listdir()


FAKE_OPENAI = """
    import sys, threading, time
    from types import SimpleNamespace
    class Client:
        chat = SimpleNamespace(completions=None)
        def __init__(self, **given): pass
        async def __aenter__(self): return self
        async def __aexit__(self, *error): pass
        async def post(self, *place, **given):
            threading.Thread(target=time.sleep, args=(0.2,), daemon=True).start()
    sys.modules["httpx2"] = SimpleNamespace(AsyncClient=Client, MockTransport=str)
    AsyncOpenAI, types = Client, SimpleNamespace(chat=SimpleNamespace(ChatCompletion=None))
"""


async def test_a_thread_of_the_warmed_client_that_ends_soon_is_waited_for() -> None:
    write("lib/site-packages/openai.py", FAKE_OPENAI)
    write("my_bot.py", "import sys\nsys.path.insert(0, 'lib/site-packages')\nimport openai" + TELLS)
    run = run_of()
    assert [await said(made(run)), await said(made(run))] == ["x", "x"]
    assert noted("imports") == "x"


TELLS = "\nopen('imports', 'a').write('x')\ndef reply(history): return 'x'"


async def test_random_numbers_differ_between_conversations() -> None:
    write("my_bot.py", "import random\ndef reply(history): return str(random.random())")
    run = run_of()
    assert await said(made(run)) != await said(made(run))


LEAVES = """
    import os, subprocess
    def reply(history):
        return str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
    def exits(history):
        open("left", "w").write(reply(history))
        os._exit(3)
"""


async def test_what_a_conversation_starts_ends_with_it_and_not_with_another() -> None:
    write("my_bot.py", LEAVES)
    run = run_of()
    one, other = made(run), made(run)
    left, kept = await said(one), await said(other)
    del one
    wait(lambda: not is_running(left))
    assert is_running(kept)
    del other
    wait(lambda: not is_running(kept))


async def test_what_a_conversation_has_started_ends_when_its_process_exits() -> None:
    write("my_bot.py", LEAVES)
    with pytest.raises(Exception, match=r"my_bot:exits: its worker ended with exit code 3\."):
        await said(made(run_of("my_bot:exits")))
    wait(lambda: not is_running(noted("left")))


async def test_a_bot_may_end_the_process_above_it() -> None:
    ends = "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(600)"
    write("my_bot.py", f"import os, signal, time\ndef reply(history):\n{ends}")
    with pytest.raises(Exception, match=r"my_bot:reply: its worker was ended by the signal SIG(KILL|TERM)"):
        await said(made(run_of()))


async def test_if_the_prepared_process_is_lost_each_conversation_imports_the_bot() -> None:
    write("my_bot.py", COUNTS)
    run = run_of()
    first: Any = made(run)
    worker = first._bot._forks._process._process._process
    os.kill(worker.pid, signal.SIGTERM)
    worker.wait()
    assert await said(made(run)) == "1"
    assert noted("imports") == "xx"


async def test_the_prepared_process_ends_with_its_run() -> None:
    write("my_bot.py", COUNTS)
    run = run_of()
    bot: Any = made(run)
    supervisor = str(bot._bot._forks._process._process._process.pid)
    del bot, run
    wait(lambda: not is_running(supervisor))


LAZY = """
    import sys
    sys.path.append("lib/site-packages")
    import library
    def reply(history):
        import library.part
        return str(library.part.LOADED_IN == __import__("os").getpid())
"""


@pytest.mark.parametrize(("opens", "second"), [("", "False"), ("\nheld = open(__file__)", "True")])
async def test_what_a_library_loads_for_the_first_reply_is_there_for_the_next_unless_forks_would_share_it(
    opens: str, second: str
) -> None:
    write("lib/site-packages/library/__init__.py", "")
    write("lib/site-packages/library/part.py", f"import os\nLOADED_IN = os.getpid(){opens}")
    write("my_bot.py", LAZY)
    run = run_of()
    assert [await said(made(run)), await said(made(run))] == ["True", second]

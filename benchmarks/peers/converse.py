"""Have conversations by one tool: `python converse.py TOOL URL CONVERSATIONS FOLDER`, in its environment.

Imports nothing of this repository, because other tools' environments do not have it. Each tool has its own
simulated user where it has one, and talks to the same bot as a function, where it takes one. sdialog and
AutoGen have a second agent of theirs as the bot. In verifiers the bot is the policy that it calls itself.

The last line of the output is a JSON object: turns, calls that the endpoint answered, seconds, processor
seconds, and megabytes of memory at most. A few conversations are simulated before, so that imports and first
connections are not counted; with a further argument `cold`, none is.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import threading
import time
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI  # here, so that it is imported once for all processes of a bot

TURNS, AT_ONCE, FIRST = 3, 16, 4
"""Turns of a conversation, conversations at once, and conversations before those that are measured."""
USER = "You write to the assistant of a tea house. Ask one thing at a time, and never answer for it. " * 12
BOT = "You answer visitors of a tea house, by its documents alone, in at most four sentences. " * 14
"""About 300 tokens each, as instructions with passages have."""
FIRST_REQUEST = "Write your first message."
_OTHER = {"user": "assistant", "assistant": "user"}
_clients: dict[asyncio.AbstractEventLoop, Any] = {}
"""One for each event loop. None is collected, because that would leave dead descriptors in its loop."""


def _make_client(url: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=0, timeout=600)


_CLIENT = _make_client(os.environ.get("PEER_URL", ""))
"""The first one, made once for all processes of an own bot."""


async def ask(url: str, model: str, system: str, said: Sequence[Any]) -> str:
    """Return a model's answer by the openai client."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = _make_client(url) if _clients else _CLIENT
    messages = [
        {"role": "system", "content": system},
        *(said or [{"role": "user", "content": FIRST_REQUEST}]),
    ]
    answer = await _clients[loop].chat.completions.create(model=model, messages=messages)
    return str(answer.choices[0].message.content)


async def ask_user(url: str, said: Sequence[Any]) -> str:
    """Return what a user says who is nothing but a prompt."""
    turned = [{"role": _OTHER[one["role"]], "content": one["content"]} for one in said]
    return await ask(url, "user", USER, turned)


async def simulate_all(simulate: Callable[[int], Awaitable[int]], number: int) -> int:
    """Simulate so many conversations, `AT_ONCE` at the same time; return the turns of all."""
    places = asyncio.Semaphore(AT_ONCE)

    async def simulate_in_place(which: int) -> int:
        async with places:
            return await simulate(which)

    return sum(await asyncio.gather(*map(simulate_in_place, range(number)))) // 2


@cache
def _keep_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop in a thread, for tools that call from threads or keep connections."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def _wait_for(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run_coroutine_threadsafe(work, _keep_loop()).result()


def run_bare(url: str, number: int, folder: Path) -> int:
    """Run a loop around the openai client."""

    async def simulate(which: int) -> int:
        said: list[Any] = []
        for _ in range(TURNS):
            said.append({"role": "user", "content": await ask_user(url, said)})
            said.append({"role": "assistant", "content": await ask(url, "bot", BOT, said)})
        return len(said)

    return asyncio.run(simulate_all(simulate, number))


def run_autogen(url: str, number: int, folder: Path) -> int:
    """Run a team of two assistants."""
    agent = import_module("autogen_agentchat.agents").AssistantAgent
    client = import_module("autogen_ext.models.openai").OpenAIChatCompletionClient
    info: dict[str, Any] = {"vision": False, "function_calling": False, "json_output": False}
    info |= {"family": "unknown", "structured_output": False}

    async def run_teams() -> int:
        connect = partial(client, base_url=url, api_key="EMPTY", max_retries=0, model_info=info)
        models = {name: connect(model=name) for name in ("user", "bot")}

        async def simulate(which: int) -> int:
            user = agent("user", model_client=models["user"], system_message=USER)
            bot = agent("bot", model_client=models["bot"], system_message=BOT)
            team = import_module("autogen_agentchat.teams").RoundRobinGroupChat(
                [user, bot], max_turns=2 * TURNS
            )
            return len((await team.run(task=FIRST_REQUEST)).messages) - 1

        return await simulate_all(simulate, number)

    return asyncio.run(run_teams())


def run_openevals(url: str, number: int, folder: Path) -> int:
    """Run `run_multiturn_simulation_async` with a user by LangChain's client."""
    simulators = import_module("openevals.simulators")
    chat = import_module("langchain_openai").ChatOpenAI
    model = chat(base_url=url, api_key="EMPTY", model="user", max_retries=0)

    async def simulate(which: int) -> int:
        said: list[Any] = []

        async def answer(inputs: Any, **_: Any) -> Any:
            said.append({"role": "user", "content": inputs["content"]})
            said.append({"role": "assistant", "content": await ask(url, "bot", BOT, said)})
            return said[-1]

        user = simulators.create_async_llm_simulated_user(system=USER, client=model)
        run = simulators.run_multiturn_simulation_async
        return len((await run(app=answer, user=user, max_turns=TURNS, thread_id=str(which)))["trajectory"])

    return int(_wait_for(simulate_all(simulate, number)))


def run_deepeval(url: str, number: int, folder: Path) -> int:
    """Run `ConversationSimulator` over goldens."""
    turn = import_module("deepeval.test_case").Turn
    golden = import_module("deepeval.dataset").ConversationalGolden

    async def call_back(input: str, turns: Sequence[Any], thread_id: str) -> Any:
        said = [{"role": one.role, "content": one.content} for one in turns]
        if not said or said[-1]["role"] != "user":
            said.append({"role": "user", "content": input})
        return turn(role="assistant", content=await ask(url, "bot", BOT, said))

    model = import_module("deepeval.models").LocalModel(model="user", base_url=url, api_key="EMPTY")
    simulator = import_module("deepeval.simulator").ConversationSimulator(
        model_callback=call_back, simulator_model=model, max_concurrent=AT_ONCE
    )
    goldens = [golden(scenario=f"{which}. {USER}") for which in range(number)]
    done = simulator.simulate(conversational_goldens=goldens, max_user_simulations=TURNS)
    return sum(len(one.turns) for one in done) // 2


def run_mlflow(url: str, number: int, folder: Path) -> int:
    """Run `ConversationSimulator` with traces in SQLite."""
    mlflow = import_module("mlflow")
    workers = {f"MLFLOW_GENAI_{kind}_MAX_WORKERS": str(AT_ONCE) for kind in ("SIMULATOR", "EVAL")}
    os.environ.update(OPENAI_API_BASE=url, OPENAI_BASE_URL=url, **workers)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("peers")

    def predict(input: Sequence[Any], **_: Any) -> Any:
        said = [{"role": one["role"], "content": one["content"]} for one in input]
        content = [{"type": "output_text", "text": _wait_for(ask(url, "bot", BOT, said))}]
        return {"output": [{"type": "message", "role": "assistant", "content": content}]}

    cases = [{"goal": f"{which}. Learn what tea costs", "persona": USER} for which in range(number)]
    simulator = import_module("mlflow.genai.simulators").ConversationSimulator
    traces = simulator(test_cases=cases, max_turns=TURNS, user_model="openai:/user").simulate(predict)
    return sum(map(len, traces))


def run_sdialog(url: str, number: int, folder: Path) -> int:
    """Run two agents; each dialogue is written to a file."""
    import_module("sdialog").config.llm("openai:user", base_url=url, api_key="EMPTY", max_retries=0)
    agent = partial(import_module("sdialog.agents").Agent, can_finish=False)

    def simulate(which: int) -> int:
        user = agent(name="user", system_prompt=USER, model="openai:user")
        bot = agent(name="bot", system_prompt=BOT, model="openai:bot")
        done = user.dialog_with(bot, max_turns=2 * TURNS, keep_bar=False)
        done.to_file(str(folder / f"{which}.json"))
        return len(done.turns)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(simulate, range(number))) // 2


def run_verifiers(url: str, number: int, folder: Path) -> int:
    """Run `MultiTurnEnv`, whose environment is the user; results are saved."""
    verifiers: Any = import_module("verifiers")

    async def begin(self: Any, state: Any) -> None:
        first = {"role": "user", "content": await ask_user(url, [])}
        state["prompt"] = [{"role": "system", "content": BOT}, first]

    async def respond(self: Any, messages: Sequence[Any], state: Any, **_: Any) -> list[Any]:
        all_said = [
            one if isinstance(one, dict) else {"role": one.role, "content": one.content} for one in messages
        ]
        said = [one for one in all_said if one["role"] != "system"]
        return [{"role": "user", "content": await ask_user(url, said)}]

    talk = type("Talk", (verifiers.MultiTurnEnv,), {"setup_state": begin, "env_response": respond})
    prompt = [{"role": "user", "content": FIRST_REQUEST}]
    rows = [{"prompt": prompt, "answer": "", "example_id": which} for which in range(number)]
    data = import_module("datasets").Dataset.from_list(rows)
    rubric = verifiers.Rubric(funcs=[], weights=[])
    config = import_module("verifiers.types").ClientConfig(api_base_url=url, api_key_var="OPENAI_API_KEY")
    done = talk(dataset=data, eval_dataset=data, rubric=rubric, max_turns=TURNS).evaluate_sync(
        client=config,
        model="bot",
        num_examples=number,
        rollouts_per_example=1,
        max_concurrent=AT_ONCE,
        save_results=True,
        results_path=folder / "results",
    )
    return sum(len(one["completion"]) + 1 for one in done["outputs"]) // 2


def run_inspect(url: str, number: int, folder: Path) -> int:
    """Run `eval_set` of a solver that talks to the bot; the user is asked by Inspect's own client."""
    os.environ.update(PEER_BASE_URL=url, PEER_API_KEY="EMPTY")
    inspect, models = import_module("inspect_ai"), import_module("inspect_ai.model")
    user_says, bot_says = models.ChatMessageUser, models.ChatMessageAssistant

    async def solve(state: Any, generate: Any) -> Any:
        user = models.get_model(role="user")
        state.messages.clear()
        said = state.messages
        for _ in range(TURNS):
            turned = [(bot_says if one.role == "user" else user_says)(content=one.text) for one in said]
            asked = [models.ChatMessageSystem(content=USER), *(turned or [user_says(content=FIRST_REQUEST)])]
            said.append(user_says(content=(await user.generate(asked)).completion))
            plain = [{"role": one.role, "content": one.text} for one in said]
            said.append(bot_says(content=await ask(url, "bot", BOT, plain)))
        state.completed = True
        return state

    def talk() -> Any:
        return solve

    samples = [import_module("inspect_ai.dataset").Sample(input=USER, id=which) for which in range(number)]
    solver = import_module("inspect_ai.solver").solver(talk)()
    _, logs = inspect.eval_set(
        [inspect.Task(dataset=samples, solver=solver, name="talks")],
        log_dir=str(folder / "logs"),
        model="openai-api/peer/bot",
        model_roles={"user": models.get_model("openai-api/peer/user", base_url=url, memoize=False)},
        max_connections=AT_ONCE,
        max_samples=AT_ONCE,
        display="none",
        retry_attempts=0,
    )
    read = import_module("inspect_ai.log").read_eval_log
    return sum(len(one.messages) for log in logs for one in read(log.location).samples or []) // 2


async def reply(history: Sequence[Any]) -> str:
    """Answer as the bot under test, a function for hallulab."""
    return await ask(os.environ["PEER_URL"], "bot", BOT, history)


class PluginBot:
    """The same bot as a plug-in of hallulab."""

    def __init__(self, context: Any) -> None:
        self._reply = import_module("hallulab.chatbots.protocol").Reply

    async def reply(self, history: Sequence[Any]) -> Any:
        """Answer the last message."""
        return self._reply(text=await reply([{"role": one.role, "content": one.text} for one in history]))


def run_hallulab(url: str, number: int, folder: Path, kind: str, options: dict[str, str]) -> int:
    """Run the command `hallulab run --no-judge`."""
    about = folder / "peer_bot-1.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Name: peer-bot\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[hallulab.chatbots]\npeer-bot = converse:PluginBot\n")
    sys.path.insert(0, str(folder))
    experiment: dict[str, Any] = {
        "scenario": str(import_module("hallulab.testing.tiny_pack").make_pack(folder / "pack")),
        "chatbots": [{"name": "mine", "kind": kind, "options": options}],
        "detectors": ["lexical"],
        **{"model": "user", "base_url": url, "concurrency": AT_ONCE},
        **{"repeats": number, "min_turns": TURNS, "max_turns": TURNS},
    }
    (folder / "peers.yaml").write_text(json.dumps(experiment))
    files = ["-c", str(folder / "peers.yaml"), "--out", str(folder / "run")]
    sys.argv = ["hallulab", "run", "--no-judge", *files, "--quiet"]
    with suppress(SystemExit):
        import_module("hallulab.simulator.cli.main").main()
    lines = (folder / "run" / "conversations.jsonl").read_text().splitlines()
    return sum(len(json.loads(line)["turns"]) for line in lines)


def run_own_endpoint(url: str, number: int, folder: Path) -> int:
    """Run hallulab with the bot behind an endpoint."""
    return run_hallulab(url, number, folder, "endpoint", {"base_url": url, "model": "bot", "system": BOT})


TOOLS: dict[str, Callable[[str, int, Path], int]] = {
    "bare": run_bare,
    "hallulab, plug-in": partial(run_hallulab, kind="peer-bot", options={}),
    "hallulab, callable": partial(run_hallulab, kind="callable", options={"target": "converse:reply"}),
    "hallulab, endpoint": run_own_endpoint,
    "inspect": run_inspect,
    "deepeval": run_deepeval,
    "mlflow": run_mlflow,
    "openevals": run_openevals,
    "sdialog": run_sdialog,
    "verifiers": run_verifiers,
    "autogen": run_autogen,
}


def count_calls(url: str) -> int:
    """Return the calls that the endpoint was asked for so far."""
    with urllib.request.urlopen(f"{url[:-3]}/stats", timeout=60) as answer:
        return int(json.load(answer))


def wait_for_children() -> None:
    """Wait until the processes of own bots have ended, so that their time counts; other tools' may stay."""
    gc.collect()
    ends = time.monotonic() + 10
    with suppress(ChildProcessError):  # there is none
        while time.monotonic() < ends:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            time.sleep(0.02)


def measure_cpu() -> float:
    """Return the processor seconds of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Simulate the conversations and print what they took."""
    tool, url, number, place = sys.argv[1:5]
    first, folder = Path(place) / "first", Path(place) / "all"
    for one in (first, folder):
        one.mkdir(parents=True, exist_ok=True)
    if sys.argv[5:] != ["cold"]:
        TOOLS[tool](url, FIRST, first)
        wait_for_children()
    calls, cpu, started = count_calls(url), measure_cpu(), time.perf_counter()
    found: dict[str, float] = {"turns": TOOLS[tool](url, int(number), folder)}
    found["seconds"] = time.perf_counter() - started
    wait_for_children()
    found |= {"calls": count_calls(url) - calls, "cpu": measure_cpu() - cpu}
    kilobytes = [
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    print("\n" + json.dumps(found | {"megabytes": sum(kilobytes) / 1000}), flush=True)
    os._exit(0)  # threads of some tools never end


if __name__ == "__main__":
    main()

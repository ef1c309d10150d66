"""How often `hallulab gate` blocks what it should not, and what it should: `python -m benchmarks.gate`.

The tables stand in docs/studies/gate.md. Runs are made of the recorded headline run (13 personas, five
chatbots, two
turns, two detectors): a persona of a made run is one of these, drawn at random, and a conversation with it is
one of the five recorded ones with that persona, with all its verdicts, drawn anew for each run. So personas,
turns of a conversation and detectors depend on each other as they were recorded to, and what differs between
two made runs of one chatbot is what differs between its seeds; as the five conversations are of five
chatbots, that is rather more than seeds of one make. A worse chatbot has further hallucinations in each turn,
a Poisson number of the mean that is given. Everything goes through `judge_run`, as in the command. Seeded.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.command import build_parser, format_table, get_exit_code
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.simulator.compare.gate import judge_run
from hallulab.simulator.compare.gate_result import GateRules
from hallulab.simulator.compare.summary import (
    ConversationSummary,
    RunSummary,
    TurnSummary,
    summarize_run,
)
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder

EXPERIMENT, RECORDING = Path("examples/headline.yaml"), Path("tests/recordings/headline.jsonl.gz")
REPEATS = 200
PERSONAS = (7, 13, 20, 36, 60, 100)
GUARDED = 36
"""Personas where the guard of severity is measured."""
WORSE = (0.2, 0.5)
"""Further hallucinations a turn."""
SEVERE = (0.0, 0.001, 0.01, 0.05)
"""Share of turns with a severe hallucination."""
BOT = "bot"
CHANGES = (("agent", "vanilla"), ("prompt-engineered", "vanilla"), ("vanilla", "agent"))
"""Recorded chatbots that stand for a bot before and after a change."""
TESTED_ONLY = GateRules(severity_guard=None)

Pool = Sequence[Sequence[ConversationSummary]]
"""Recorded conversations, by persona."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit code, as of `hallulab`."""
    parser = build_parser("gate", __doc__)
    parser.add_argument("--run", type=Path, metavar="RUN", help="the headline run; by default it is replayed")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"gates a cell, {REPEATS} by default")
    given = parser.parse_args(arguments)

    def run() -> None:
        recorded = summarize_run(RunFolder(given.run)) if given.run else replay()
        for part in render(recorded, given.repeats):
            print(part, end="\n\n", flush=True)

    return get_exit_code(run)


def replay() -> RunSummary:
    """Summarize the headline run, replayed from its recording."""
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "headline")
        experiment = load_experiment(EXPERIMENT, {"model": DEFAULT_CPU_MODEL})
        settings = RunSettings(replay=RECORDING, quiet=True)
        asyncio.run(run_experiment(experiment, folder, settings, simulate=True))
        return summarize_run(folder)


def render(recorded: RunSummary, repeats: int, personas: Sequence[int] = PERSONAS) -> Iterator[str]:
    """Yield what is printed.

    Args:
        recorded: the run that others are made of.
        repeats: gates a cell.
        personas: numbers of personas.
    """
    pool = build_pool(recorded)
    made = make_run(np.random.default_rng(0), pool, recorded, 36)
    for name, run in (("the headline run", recorded), ("a made run of 36 personas", made)):
        passed = count_self_passes(run, repeats)
        yield f"{name} against itself, other seeds of bootstrap and exchanges: {passed} of {repeats} pass"

    def share(number: int, worse: float = 0.0, severe: float = 0.0, rules: GateRules = TESTED_ONLY) -> str:
        blocked = count_blocked(pool, recorded, number, repeats, worse, severe, rules)
        return render_share(blocked, repeats)

    yield render_recorded(recorded)
    yield format_table(
        ["personas", "nothing was changed", *(f"worse by {worse:g} a turn" for worse in WORSE)],
        [[str(number), *(share(number, worse) for worse in (0.0, *WORSE))] for number in personas],
    )
    yield format_table(
        ["severe turns of either run", f"blocked, of {GUARDED} personas"],
        [[f"{severe:.1%}", share(GUARDED, severe=severe, rules=GateRules())] for severe in SEVERE],
    )


def render_recorded(recorded: RunSummary) -> str:
    """Return a table of gates on the recorded conversations: one bot that was made in two ways."""
    rows = []
    for one, other in CHANGES:
        before, now = (take_chatbot(recorded, name) for name in (one, other))
        result = judge_run(now, before, TESTED_ONLY)
        rows += [
            [
                f"{one} → {other}",
                line.detector,
                f"{line.before:.2f} → {line.now:.2f}",
                f"{line.p_worse:.3f}",
                result.verdict,
            ]
            for line in result.lines
        ]
    return format_table(["the bot before → after", "judged by", "HPT-1", "p", "verdict"], rows)


def take_chatbot(recorded: RunSummary, name: str) -> RunSummary:
    """Return the run of one of the chatbots alone, under another name."""
    own = [one for one in recorded.conversations if one.chatbot == name]
    setup = recorded.setup.model_copy(update={"chatbots": {BOT: recorded.setup.chatbots[name]}})
    conversations = tuple(one.model_copy(update={"chatbot": BOT}) for one in own)
    return recorded.model_copy(update={"setup": setup, "conversations": conversations})


def build_pool(recorded: RunSummary) -> Pool:
    """Return a run's conversations by persona."""
    found: dict[str, list[ConversationSummary]] = defaultdict(list)
    for one in recorded.conversations:
        found[one.persona].append(one)
    return [found[persona] for persona in sorted(found)]


def make_run(
    random: np.random.Generator,
    pool: Pool,
    recorded: RunSummary,
    personas: int,
    people: Sequence[int] | None = None,
    worse: float = 0.0,
    severe: float = 0.0,
) -> RunSummary:
    """Make a run of a single chatbot.

    Args:
        random: draws everything.
        pool: recorded conversations by persona.
        recorded: the run they are from, for what decides its results.
        personas: how many.
        people: which of the pool each is; None: drawn.
        worse: further hallucinations a turn.
        severe: share of turns with a severe hallucination.
    """
    chosen = draw_people(random, pool, personas) if people is None else people
    conversations = []
    for number, who in enumerate(chosen):
        own = pool[who][int(random.integers(len(pool[who])))]
        turns = tuple(_change_turn(random, turn, worse, severe) for turn in own.turns)
        conversations.append(
            own.model_copy(
                update={"id": str(number), "persona": f"p{number}", "chatbot": BOT, "turns": turns}
            )
        )
    [bot, *_] = recorded.setup.chatbots.values()
    setup = recorded.setup.model_copy(update={"chatbots": {BOT: bot}})
    return recorded.model_copy(update={"setup": setup, "conversations": tuple(conversations)})


def draw_people(random: np.random.Generator, pool: Pool, personas: int) -> list[int]:
    """Draw which of the pool each persona is."""
    return [int(who) for who in random.integers(len(pool), size=personas)]


def _change_turn(random: np.random.Generator, turn: TurnSummary, worse: float, severe: float) -> TurnSummary:
    """Add hallucinations to a turn; both detectors find them. Each turn has another reply then."""
    more = int(random.poisson(worse))
    is_severe = random.random() < severe
    verdicts = {
        name: verdict.model_copy(
            update={
                "spans": verdict.spans + more + is_severe,
                "flagged": verdict.flagged or more > 0 or is_severe,
                "severities": (5.0,) if is_severe else (),
            }
        )
        for name, verdict in turn.verdicts.items()
    }
    reply = f"{random.integers(2**63):016x}"
    return turn.model_copy(update={"verdicts": verdicts, "reply": reply})


def count_self_passes(run: RunSummary, repeats: int) -> int:
    """Count how often a run passes against itself, each time with other random numbers in the statistics."""
    passed = 0
    for seed in range(repeats):
        with patch("hallulab.simulator.statistics.differences._SEED", seed):
            passed += judge_run(run, run, GateRules()).verdict == "passed"
    return passed


def count_blocked(
    pool: Pool,
    recorded: RunSummary,
    personas: int,
    repeats: int,
    worse: float = 0.0,
    severe: float = 0.0,
    rules: GateRules = TESTED_ONLY,
) -> int:
    """Count how often a made run is blocked against a made baseline of the same personas.

    Args:
        pool: recorded conversations by persona.
        recorded: the run they are from.
        personas: how many each run has.
        repeats: how many pairs are made.
        worse: further hallucinations a turn of the run, not of the baseline.
        severe: share of severe turns of both.
        rules: the gate's; by default only the test blocks.
    """
    random = np.random.default_rng((personas, round(1000 * worse), round(10_000 * severe)))
    blocked = 0
    for _ in range(repeats):
        people = draw_people(random, pool, personas)
        before = make_run(random, pool, recorded, personas, people, severe=severe)
        now = make_run(random, pool, recorded, personas, people, worse, severe)
        blocked += judge_run(now, before, rules).verdict == "blocked"
    return blocked


def render_share(count: int, repeats: int) -> str:
    """Format a share with its exact 95% interval (Clopper and Pearson)."""
    from scipy.stats import binomtest

    bounds = binomtest(count, repeats).proportion_ci(method="exact")
    return f"{count / repeats:.1%} [{bounds.low:.1%}, {bounds.high:.1%}]"


if __name__ == "__main__":
    sys.exit(main())

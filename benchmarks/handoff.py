"""How AgentBot does with hand-offs on the default model: `python -m benchmarks.handoff`.

Twenty first turns, one a persona of the consumer pack: what happened to it, and the first thing that the
person wants to know. Each is answered with `routing: handoff`. The default model's answers and the searches
are replayed; `--record FILE --base-url URL` asks a server of the model that was started with
`--enable-auto-tool-choice --tool-call-parser hermes`. The table stands in docs/methods.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import format_table, run_recorded
from hallulab.agents.models.recording import Recording
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.chatbots.agent import AgentBot
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Message
from hallulab.simulator.engine.models import build_knowledge, open_pool
from hallulab.simulator.records.experiment import Experiment

RECORDING = Path("tests") / "recordings" / "handoff.jsonl.gz"
"""The packed answers, relative to the repository."""
PACK = "consumer-grievance-india"
TURNS = 20


def first_message(persona: Persona) -> Message:
    """Return what a persona says first."""
    return Message(role="user", text=f"{persona.grievance} {persona.goals[0]}?")


async def count_outcomes(recording: Recording, experiment: Experiment) -> Counter[str]:
    """Return how often the turns end in which way: a specialist's name, or why there was no answer.

    Raises:
        OperationalError: the recording lacks an answer, or the server cannot be reached.
    """
    scenario = load_scenario(PACK)
    outcomes: Counter[str] = Counter()
    async with open_pool(experiment, recording) as pool:
        await pool.check()
        knowledge = KnowledgeBase(
            scenario, embedding_model=experiment.embedding_model, recording=pool.recording
        )
        if not recording.replaying:
            await build_knowledge(knowledge, quiet=True)
        context = ChatbotContext(
            models=pool, knowledge=knowledge, scenario=scenario, options={"routing": "handoff"}
        )
        for persona in scenario.personas[:TURNS]:
            try:
                reply = await AgentBot(context).reply((first_message(persona),))
                outcomes[next(step.text for step in reply.steps if step.name == "route")] += 1
            except ChatbotError as error:
                outcomes[str(error)] += 1
    return outcomes


async def measure(recording: Recording, experiment: Experiment) -> str:
    """Return the table of what the recorded answers give, the most frequent first; errors as above."""
    outcomes = await count_outcomes(recording, experiment)
    rows = [(name, str(count)) for name, count in outcomes.most_common()]
    return format_table((f"who answered, of {TURNS} turns", "turns"), rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print; return the exit code."""
    return run_recorded("handoff", __doc__, RECORDING, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())

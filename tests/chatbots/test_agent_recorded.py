"""AgentBot with hand-offs, on the default model's recorded answers to twenty first turns."""

from __future__ import annotations

from collections import Counter

from hallulab.agents.models.recording import Recording
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.agents.serving.catalogue import DEFAULT_CPU_MODEL
from hallulab.chatbots.agent import AgentBot
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.transcript import Message
from hallulab.simulator.engine.models import open_pool
from hallulab.simulator.records.experiment_file import load_experiment
from tests.places import ROOT

RECORDING = ROOT / "tests" / "recordings" / "handoff.jsonl.gz"
"""Behind vLLM's parser `hermes`; docs/studies/methods.md has the counts."""


async def test_the_default_model_hands_over_in_sixteen_of_twenty_turns() -> None:
    experiment = load_experiment(None, {"model": DEFAULT_CPU_MODEL})
    scenario = load_scenario("consumer-grievance-india")
    outcomes: Counter[str] = Counter()
    async with open_pool(experiment, Recording.replay(RECORDING)) as pool:
        await pool.check()
        knowledge = KnowledgeBase(
            scenario, embedding_model=experiment.embedding_model, recording=pool.recording
        )
        options = {"routing": "handoff"}
        context = ChatbotContext(models=pool, knowledge=knowledge, scenario=scenario, options=options)
        for persona in scenario.personas[:20]:
            said = Message(role="user", text=f"{persona.grievance} {persona.goals[0]}?")
            try:
                reply = await AgentBot(context).reply((said,))
                outcomes[next(step.text for step in reply.steps if step.name == "route")] += 1
            except ChatbotError as error:
                outcomes[str(error)] += 1
    assert outcomes == {
        "paralegal": 16,
        "route: the receptionist hands over to none of paralegal, lawyer, drafter.": 4,
    }

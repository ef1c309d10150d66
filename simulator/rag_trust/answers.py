"""Ask the chatbots from given documents and ask the judge, and journal every answer as it comes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from hallulab.agents.concurrency import gather_results
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.retrieval.embeddings import Embedder
from hallulab.agents.served_model import identify_models
from hallulab.agents.versions import compute_code_version
from hallulab.chatbots.pipeline import is_refusal
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError
from hallulab.chatbots.registry import compute_chatbot_version, make_chatbot
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.json_text import LineWriter, digest, read_lines
from hallulab.scenarios.packs.pack import Document, Persona, Scenario, Specialist
from hallulab.scenarios.transcript import Message, Passage
from hallulab.simulator.rag_trust import scores as judging
from hallulab.simulator.rag_trust.config import MeasuredAnswer, RagTrustConfig, Task
from hallulab.simulator.rag_trust.scores import remove_citations
from hallulab.simulator.records.experiment_file import describe

_WORD = re.compile(r"\w+")


class GivenPassages:
    """A `Retriever` over a few passages: retrieval is simulated, as in the paper.

    A search for all of them gives them in their order. A search for fewer, as FactChecker's for a claim,
    gives those with the most words of the query, ties in their order.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)

    async def search(self, query: str, k: int) -> tuple[Passage, ...]:
        """Return the `k` passages with the most words of the query; all of them in their order."""
        if k >= len(self._passages):
            return self._passages
        asked = set(_WORD.findall(query.lower()))

        def count_shared(passage: Passage) -> int:
            return len(asked.intersection(_WORD.findall(passage.text.lower())))

        return tuple(sorted(self._passages, key=count_shared, reverse=True)[:k])


def build_scenario(passages: Sequence[Passage]) -> Scenario:
    """Return a scenario without a subject, for chatbots that answer a question from these passages."""
    return Scenario(
        name="rag-trust",
        title="Questions on given documents",
        description="Single questions, each with its documents.",
        domain="questions of all kinds",
        assistant="answer questions from documents",
        functions=("answer a question from the documents",),
        specialists=(
            Specialist(name="researcher", title="researcher", duty="answer the question from the documents"),
        ),
        documents=tuple(
            Document(name=passage.document, title=passage.document, source="HotpotQA", text=passage.text)
            for passage in passages
        ),
        personas=(
            Persona(
                id="asker",
                name="Somebody",
                grievance="wants an answer",
                goals=("get the answer",),
                manner="asks a single question",
                summary="Somebody asks a single question.",
            ),
        ),
    )


SIMILARITY = "similarity"
"""Kind of the recording entries of similarities."""


class AnswerCollector:
    """Gets answers, with the judge's word on each, from models that are served."""

    def __init__(self, config: RagTrustConfig, pool: ModelPool, embedder: Embedder) -> None:
        self._config = config
        self._pool = pool
        self._embedder = embedder
        self._known = identify_models(pool)
        self._judge = config.judge or "default"
        self._judging = [
            compute_code_version(judging.__name__),
            [prompt.version for prompt in judging.PROMPTS],
            self._known[self._judge],
            config.decision_samples,
        ]

    def build_options(self, task: Task) -> dict[str, object]:
        """Return the options of a task's chatbot."""
        own = self._config.experiment.options_of(task.chatbot)
        return {**own, "strategy": task.strategy, "cite": True}

    def compute_identity(self, task: Task) -> str:
        """Return the hash of everything that decides the answer and what is measured on it."""
        named = [value for value in task.chatbot.options.values() if isinstance(value, str)]
        asked = {name: self._known[name] for name in named if name in self._known}
        version = compute_chatbot_version(
            task.chatbot.kind, self.build_options(task), {**asked, "chatbot": self._known[task.model]}
        )
        made_of = [
            task.question.question,
            task.question.answer,
            task.composition.model_dump(mode="json"),
            task.attack.model_dump(mode="json"),
            [task.chatbot.name, version, self._config.seed],
            [task.dimensions, self._judging, self._embedder.name],
        ]
        return digest(made_of)[:16]

    async def answer(self, task: Task) -> MeasuredAnswer:
        """Have a question answered and judged. A failure is part of the answer."""
        composition, question = task.composition, task.question
        titles = tuple(passage.document for passage in composition.passages)
        session = self._pool.session("judge", self._config.seed, self._config.judge)
        measured: dict[str, float | None] = {}
        error = reply = None
        try:
            context = ChatbotContext(
                models=self._pool,
                knowledge=GivenPassages(composition.passages),
                scenario=build_scenario(composition.passages),
                model=task.model,
                seed=self._config.seed,
                top_k=len(composition.passages),
                options=self.build_options(task),
            )
            bot = make_chatbot(task.chatbot.kind, context)
            said = await bot.reply([Message(role="user", text=question.question.strip())])
            reply, session.calls = said.text, [*said.calls]
            if not is_refusal(reply):
                text = remove_citations(reply, titles)
                if "factuality" in task.dimensions:
                    measured["factual"] = await judging.estimate_factuality(
                        session, question.question.strip(), question.answer, text
                    )
                if "robustness" in task.dimensions:
                    measured["similarity"] = await self._compute_similarity(question.answer, text)
                    measured["matching"] = await judging.estimate_match(session, question.answer, text)
        except ChatbotError as failure:
            error, session.calls = str(failure), [*failure.calls]
        except ModelError as failure:
            error = f"the judge: {failure}"
        return MeasuredAnswer(
            id=self.compute_identity(task),
            question_id=question.id,
            question=question.question,
            expected=question.answer,
            fake=composition.fake_answer,
            chatbot=task.chatbot.name,
            model=task.model,
            strategy=task.strategy,
            poison=task.attack.poison_ratio,
            distractors=task.attack.distractors,
            titles=titles,
            gold=composition.gold,
            reply=reply,
            error=error,
            calls=tuple(session.calls),
            **measured,
        )

    async def _compute_similarity(self, expected: str, reply: str) -> float:
        """Return the cosine of the embeddings, at least 0; from the recording if it is there."""
        recording, key = self._pool.recording, digest([self._embedder.name, expected, reply])
        known: float | None = recording.get(SIMILARITY, key)
        if known is None:
            one, other = await asyncio.to_thread(self._embedder.passages, [expected, reply])
            known = recording.put(SIMILARITY, key, round(float(one @ other), 6))
        return min(1.0, max(0.0, float(known)))


async def ask_all(
    asking: AnswerCollector,
    tasks: Sequence[Task],
    journal: Path,
    concurrency: int,
    on_done: Callable[[], object] = lambda: None,
) -> list[MeasuredAnswer]:
    """Return the answers to all tasks, in order; those in the journal are not asked for again.

    Answers with a failure are. Each new answer is written as soon as it is there.

    Args:
        concurrency: answers under way at once.

    Raises:
        UsageError: the journal is damaged.
        OperationalError: the journal cannot be written.
        ReplayMiss: the recording that is replayed lacks an answer.
    """
    known = read_answers(journal)
    places = asyncio.Semaphore(concurrency)

    async def get_answer(task: Task) -> MeasuredAnswer:
        key = asking.compute_identity(task)
        if key not in known or known[key].error is not None:
            async with places:
                answer = await asking.answer(task)
            # A failure that repeats itself is no news: the journal would grow with every try.
            if key not in known or known[key].error != answer.error:
                answers.append(answer.model_dump_json())
            known[key] = answer
        on_done()
        return known[key]

    with LineWriter(journal) as answers:
        return await gather_results(map(get_answer, tasks))


def read_answers(journal: Path) -> dict[str, MeasuredAnswer]:
    """Return the answers of a journal by identifier; a later try replaces a failure.

    Raises:
        UsageError: a line is wrong; names it.
    """
    found: dict[str, MeasuredAnswer] = {}
    for number, value in read_lines(journal):
        try:
            answer = MeasuredAnswer.model_validate(value)
        except ValidationError as error:
            place = f"{journal}, line {number}"
            raise UsageError(f"{place}: {describe(error)} Correct or delete the line.") from error
        if answer.id not in found or found[answer.id].error is not None:
            found[answer.id] = answer
    return found

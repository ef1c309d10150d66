"""What the chatbots share: reformulate, retrieve, put evidence into a prompt, generate.

Every prompt that needs evidence begins with the same frame (task and documents) and goes on with its own
instructions. So all requests of a turn, and of chatbots that retrieved the same, share a long prefix that
the server computes once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar

from agents.claim_check import ClaimCheck
from agents.models.model import Session
from agents.models.prompt import ChatMessage, load_prompt
from agents.retrieval.reformulation import reformulate
from chatbots.options import GenerationOptions
from chatbots.protocol import ChatbotContext, ChatbotError, Reply
from chatbots.tidy import tidy_reply
from scenarios.errors import HallulabError, OperationalError
from scenarios.files.digest import digest
from scenarios.options import read_options
from scenarios.packs.pack import Scenario
from scenarios.transcript import Call, Message, Passage, Step


@dataclass
class Work:
    """One reply in the making."""

    history: tuple[Message, ...]
    """The dialogue, ending with the user's message that is answered."""
    session: Session
    """Where models are asked; its ledger holds this reply's calls."""
    query: str = ""
    """The stand-alone query, once there is one."""
    passages: tuple[Passage, ...] = ()
    """The evidence, once there is some."""
    steps: list[Step] = field(default_factory=list)
    """What was done so far."""

    @property
    def question(self) -> str:
        """The user's message that is answered."""
        return self.history[-1].text

    def note(self, name: str, text: str) -> None:
        """Keep a step."""
        self.steps.append(Step(name=name, text=text))


class RagChatbot(ABC):
    """A chatbot on the scenario's documents. Subclasses say how a reply comes about.

    Args:
        context: models, knowledge base, scenario, seed and options.

    Raises:
        UsageError: an option is unknown or wrong.
    """

    KIND: ClassVar[str]
    """The name it is registered under."""
    OPTIONS: ClassVar[type[GenerationOptions]] = GenerationOptions
    """Its options."""
    PROMPTS: ClassVar[tuple[str, ...]]
    """The prompt files it uses, as `package/name`: what changes its replies counts in its version."""

    options: GenerationOptions
    claim_check: ClaimCheck = ClaimCheck()
    """By which models it verifies what it says, and by which of the prompt files; by none."""

    def __init__(self, context: ChatbotContext) -> None:
        self.context = context
        self.options = read_options(f"chatbot {self.KIND}", self.OPTIONS, context.options)
        self._prompts = {path.split("/")[1]: load_prompt(*path.split("/")) for path in self.PROMPTS}

    @abstractmethod
    async def answer(self, work: Work) -> str:
        """The reply to the user, with everything noted in `work`.

        Raises:
            OperationalError: a model or the knowledge base failed.
        """

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        session = self.context.models.session(
            "chatbot", turn_seed(self.context.seed, history), self.context.model
        )
        work = Work(tuple(history), session)
        with failures_as_chatbot_errors(session.calls):
            text = await self.answer(work)
        return Reply(
            text=text,
            query=work.query,
            passages=work.passages,
            steps=tuple(work.steps),
            calls=tuple(session.calls),
        )

    async def reformulate(self, work: Work) -> None:
        """Make the user's message a stand-alone query. One call, also for a first message."""
        work.query = await reformulate(work.session, work.history[:-1], work.question)
        work.note("reformulated_query", work.query)

    async def retrieve(self, work: Work) -> None:
        """Search the knowledge base for the stand-alone query."""
        work.passages = await self.context.knowledge.search(work.query, self.context.top_k)

    def instruct(self, work: Work, prompt: str, **values: str) -> list[ChatMessage]:
        """The frame with the turn's evidence, the prompt's own instructions, then its other messages."""
        scenario = self.context.scenario
        evidence = format_evidence(work.passages, titles_of(scenario))
        frame = self._prompts["frame"].fill(
            domain=scenario.domain, assistant=scenario.assistant.rstrip("."), evidence=evidence
        )
        own = self._prompts[prompt].fill(values)
        return [ChatMessage("system", f"{frame[0].text}\n\n{own[0].text}"), *own[1:]]

    async def generate(self, work: Work, prompt: str, **values: str) -> str:
        """A draft of the reply: instructions with evidence, then the dialogue as it was."""
        messages = [*self.instruct(work, prompt, **values), *as_chat(work.history)]
        return await self.write(work, "generate", "draft", messages)

    async def write(self, work: Work, step: str, note: str, messages: Sequence[ChatMessage]) -> str:
        """A text for the user: asked for, noted as the model gave it, and tidied."""
        answer = await work.session.text(
            step, messages, temperature=self.options.temperature, max_tokens=self.options.max_tokens
        )
        work.note(note, answer)
        return not_empty(step, answer)


def not_empty(step: str, answer: str) -> str:
    """The tidied answer.

    Raises:
        OperationalError: nothing is left of it.
    """
    text = tidy_reply(answer)
    if not text:
        raise OperationalError(f"{step}: the model gave an empty reply ({answer[:80]!r}).")
    return text


@contextmanager
def failures_as_chatbot_errors(calls: Sequence[Call]) -> Iterator[None]:
    """Turn errors of models, knowledge base and settings (a missing API key) into a ChatbotError with the
    calls so far."""
    try:
        yield
    except HallulabError as error:
        raise ChatbotError(str(error), calls) from error


def turn_seed(seed: int, history: Sequence[Message]) -> int:
    """Seed of a turn's requests, in [0, 2^28): the same for all chatbots, another one for each turn."""
    turn = sum(message.role == "user" for message in history) - 1
    return int(digest(["chatbot", seed, turn])[:7], 16)


def titles_of(scenario: Scenario) -> dict[str, str]:
    """Document names to titles."""
    return {document.name: document.title for document in scenario.documents}


def format_evidence(passages: Sequence[Passage], titles: Mapping[str, str]) -> str:
    """Passages as they read in a prompt: numbered, each under its document's title."""
    blocks = []
    for number, passage in enumerate(passages, start=1):
        title = titles.get(passage.document, passage.document)
        text = passage.text.strip().removeprefix(title).lstrip(" .:\n")
        blocks.append(f"[{number}] {title}\n{text}")
    return "\n\n".join(blocks) or "(no document was found)"


def functions_of(scenario: Scenario) -> str:
    """The assistant's core functions as they read in a prompt, one line each."""
    return "\n".join(f"- {line}" for line in scenario.functions or (scenario.assistant,))


def as_chat(history: Sequence[Message]) -> list[ChatMessage]:
    """A dialogue as chat messages."""
    return [ChatMessage(message.role, message.text) for message in history]

"""Shared steps of our chatbots: search, prompt strategies, generation, and a tidy reply.

Every prompt with evidence begins with the same frame (task and documents); its own instructions follow. So
all requests of a turn, and of chatbots that retrieved the same passages, share a long prefix that the server
computes once.

Prompt strategies against wrong documents, for any of our chatbots: RAG-Trust, section 3, describes four and
prints none, so the texts in `prompts/strategy_*.txt` are ours. A strategy's text follows the bot's own
instructions for its draft, after the frame and the documents.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from pydantic import Field

from hallulab.agents.models.prompt import ChatMessage, load_prompt_at
from hallulab.agents.models.session import Session
from hallulab.agents.retrieval.knowledge import reformulate
from hallulab.agents.served_model import ClaimCheck
from hallulab.chatbots.protocol import ChatbotContext, ChatbotError, Reply
from hallulab.scenarios.components import read_options
from hallulab.scenarios.errors import HallulabError, OperationalError
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.words import is_courtesy
from hallulab.scenarios.transcript import Call, Frozen, Message, Passage, Step

Strategy = Literal["baseline", "critical", "hedge", "verify"]
"""`baseline` answers from the documents, `critical` distrusts them, `hedge` may decline, `verify` checks step
by step first and may decline, too."""

STRATEGIES: tuple[Strategy, ...] = ("baseline", "critical", "hedge", "verify")
"""All of them, in the paper's order."""

DECLINED = "I_DECLINE_TO_ANSWER"
"""A reply that refuses to answer (the paper's marker)."""

STRATEGY_PROMPTS = (*(f"chatbots/strategy_{name}" for name in STRATEGIES), "chatbots/cite")
"""The prompt files, which are part of the version of each of our bots."""

_MARKER = re.compile(r"\bI[ _]DECLINE[ _]TO[ _]ANSWER\b", re.IGNORECASE)
_CONCLUSION = re.compile(r"^[ \t*_#>-]*(?:final )?answer[*_ \t]*:[*_ \t]*", re.IGNORECASE | re.MULTILINE)


def is_refusal(reply: str) -> bool:
    """Return whether a reply refuses to answer: it begins with the marker, whatever follows.

    Only the marker counts, whatever case it is in. A reply that answers and names the marker later, as small
    models do, is an answer.
    """
    return _MARKER.match(reply.lstrip(" \t\n\r*_`\"'[(#>-")) is not None


def extract_conclusion(reply: str) -> str:
    """Return what follows the last `Answer:` at a line's beginning; the whole reply if nothing does."""
    found = list(_CONCLUSION.finditer(reply))
    return (reply[found[-1].end() :].strip() if found else "") or reply


class GenerationOptions(Frozen):
    """How replies are sampled. The paper gives neither value."""

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Temperature of a draft. We choose 0, so that chatbots do not differ by chance."""
    max_tokens: int = Field(default=220, ge=1)
    """Limit of a reply in tokens: about twice the five short sentences that the prompts ask for."""
    strategy: Strategy | None = None
    """Instruction of a draft about wrong documents (RAG-Trust section 3); None: none."""
    cite: bool = False
    """True if a draft is asked to cite documents by number in square brackets (RAG-Trust section 5.3)."""


_LABEL = re.compile(
    r"\A[\s*_#>\"]*(?:(?:edited|corrected|final|revised|rewritten)\s+)?(?:assistant|chatbot|answer|reply|response)"
    r"[*_ \t]*:[*_ \t]*\n?",
    re.IGNORECASE,
)
_NEXT_SPEAKER = re.compile(
    r"^[ \t*_#>]*(?:user|human|assistant)[*_ \t]*:|<\|(?:im_start|im_end|eot_id|endoftext)\|>",
    re.IGNORECASE | re.MULTILINE,
)


def tidy_reply(text: str) -> str:
    """Return the reply without leading labels such as `Assistant:`, up to the next speaker's label.

    Nothing else is changed, because the model is judged by its own words. May be empty.
    """
    while (without := _LABEL.sub("", text, count=1)) != text:
        text = without
    following = _NEXT_SPEAKER.search(text)
    if following:
        text = text[: following.start()]
    return text.strip()


SHARED_PROMPTS = ("agents.retrieval/reformulation", "chatbots/frame", "chatbots/courtesy", *STRATEGY_PROMPTS)
"""The prompt files of every chatbot of ours."""


@dataclass
class Draft:
    """One reply in the making."""

    history: tuple[Message, ...]
    """The dialogue, ending with the user's message to answer."""
    session: Session
    """Asks the models; its ledger holds this reply's calls."""
    query: str = ""
    """The stand-alone query, once there is one."""
    passages: tuple[Passage, ...] = ()
    """The evidence, once there is some."""
    steps: list[Step] = field(default_factory=list)

    @property
    def question(self) -> str:
        """The user's message to answer."""
        return self.history[-1].text

    def note(self, name: str, text: str) -> None:
        """Add a step."""
        self.steps.append(Step(name=name, text=text))


class RagChatbot(ABC):
    """A chatbot on the scenario's documents. Subclasses define how it makes a reply.

    Args:
        context: models, knowledge base, scenario, seed and options.

    Raises:
        UsageError: an option is unknown or wrong.
    """

    VERSION: ClassVar[int] = 1
    """Raised by the author when replies change for a reason that code, options, prompts and models do not
    show."""
    KIND: ClassVar[str]
    OPTIONS: ClassVar[type[GenerationOptions]] = GenerationOptions
    PROMPTS: ClassVar[tuple[str, ...]]
    """The prompt files it uses, as `package/name`; they are part of its version."""

    options: GenerationOptions
    claim_check: ClaimCheck = ClaimCheck()
    """The models and prompt files with which it verifies its claims; by default none."""

    def __init__(self, context: ChatbotContext) -> None:
        self.context = context
        self.options = read_options(f"chatbot {self.KIND}", self.OPTIONS, context.options)
        self._prompts = {path.split("/")[1]: load_prompt_at(path) for path in self.PROMPTS}

    @abstractmethod
    async def answer(self, work: Draft) -> str:
        """Make the reply to the user; keep steps, query and passages in `work`.

        Raises:
            OperationalError: a model or the knowledge base failed.
        """

    async def reply(self, history: Sequence[Message]) -> Reply:
        """See `Chatbot.reply`."""
        session = self.context.models.session(
            "chatbot", turn_seed(self.context.seed, history), self.context.model
        )
        work = Draft(tuple(history), session)
        asked = self.answer_courtesy if is_courtesy(work.question) else self.answer
        with failures_as_chatbot_errors(session.calls):
            text = await asked(work)
        return Reply(
            text=text,
            query=work.query,
            passages=work.passages,
            steps=tuple(work.steps),
            calls=tuple(session.calls),
        )

    async def answer_courtesy(self, work: Draft) -> str:
        """Answer thanks, a greeting or a goodbye (`is_courtesy`). One call, and no search.

        The papers do not say what happens then. A search for "Thank you" finds any documents, and bots then
        talk about them.
        """
        work.note("courtesy", "The message asks nothing, so nothing is searched.")
        scenario = self.context.scenario
        system = self._prompts["courtesy"].fill(
            domain=scenario.domain, assistant=scenario.assistant.rstrip(".")
        )
        return await self.write(work, "courtesy", "draft", [*system, *format_chat(work.history)])

    async def reformulate(self, work: Draft) -> None:
        """Rewrite the user's message as a stand-alone query. One call, also for a first message."""
        work.query = await reformulate(work.session, work.history[:-1], work.question)
        work.note("reformulated_query", work.query)

    async def retrieve(self, work: Draft) -> None:
        """Search the knowledge base for the stand-alone query."""
        work.passages = await self.context.knowledge.search(work.query, self.context.top_k)

    def instruct(self, work: Draft, prompt: str, **values: str) -> list[ChatMessage]:
        """Return the frame with the evidence and the prompt's instructions, then its other messages."""
        scenario = self.context.scenario
        evidence = format_evidence(work.passages, collect_titles(scenario))
        frame = self._prompts["frame"].fill(
            domain=scenario.domain, assistant=scenario.assistant.rstrip("."), evidence=evidence
        )
        own = self._prompts[prompt].fill(values)
        return [ChatMessage("system", f"{frame[0].text}\n\n{own[0].text}"), *own[1:]]

    def instruct_draft(self, work: Draft, prompt: str, **values: str) -> list[ChatMessage]:
        """Return `instruct` with the instructions of the options `strategy` and `cite` at the end."""
        system, *others = self.instruct(work, prompt, **values)
        return [ChatMessage("system", "\n\n".join([system.text, *self.draft_instructions()])), *others]

    def draft_instructions(self) -> list[str]:
        """Return what the options `strategy` and `cite` tell a draft."""
        strategy = self.options.strategy
        asked = [*([f"strategy_{strategy}"] if strategy else []), *(["cite"] if self.options.cite else [])]
        return [self._prompts[name].fill()[0].text for name in asked]

    async def generate(self, work: Draft, prompt: str, **values: str) -> str:
        """Write a draft of the reply from the instructions with evidence and the dialogue."""
        messages = [*self.instruct_draft(work, prompt, **values), *format_chat(work.history)]
        return self.conclusion(await self.write(work, "generate", "draft", messages))

    def conclusion(self, draft: str) -> str:
        """Return a draft without the steps of the strategy `verify`; the step `draft` keeps them."""
        return extract_conclusion(draft) if self.options.strategy == "verify" else draft

    async def write(self, work: Draft, step: str, note: str, messages: Sequence[ChatMessage]) -> str:
        """Ask for a text for the user, keep the model's answer as a step, and return it tidied."""
        answer = await work.session.text(
            step, messages, temperature=self.options.temperature, max_tokens=self.options.max_tokens
        )
        work.note(note, answer)
        return require_text(step, answer)


def require_text(step: str, answer: str) -> str:
    """Return the tidied answer.

    Raises:
        OperationalError: it is empty.
    """
    text = tidy_reply(answer)
    if not text:
        raise OperationalError(f"{step}: the model gave an empty reply ({answer[:80]!r}).")
    return text


@contextmanager
def failures_as_chatbot_errors(calls: Sequence[Call]) -> Iterator[None]:
    """Turn errors of models, knowledge base and settings into a ChatbotError with the calls so far."""
    try:
        yield
    except HallulabError as error:
        raise ChatbotError(str(error), calls) from error


def turn_seed(seed: int, history: Sequence[Message]) -> int:
    """Return the seed of a turn's requests, in [0, 2^28): equal for all chatbots, different for each turn."""
    turn = sum(message.role == "user" for message in history) - 1
    return int(digest(["chatbot", seed, turn])[:7], 16)


def collect_titles(scenario: Scenario) -> dict[str, str]:
    """Return document name → title."""
    return {document.name: document.title for document in scenario.documents}


def format_evidence(
    passages: Sequence[Passage], titles: Mapping[str, str], numbers: Sequence[int] | None = None
) -> str:
    """Format passages for a prompt, each under its number (1, 2, 3 … by default) and its document's title."""
    blocks = []
    for number, passage in zip(numbers or range(1, len(passages) + 1), passages, strict=True):
        title = titles.get(passage.document, passage.document)
        text = passage.text.strip().removeprefix(title).lstrip(" .:\n")
        blocks.append(f"[{number}] {title}\n{text}")
    return "\n\n".join(blocks) or "(no document was found)"


def collect_functions(scenario: Scenario) -> str:
    """Format the assistant's core functions for a prompt, one line each."""
    return "\n".join(f"- {line}" for line in scenario.functions or (scenario.assistant,))


def format_chat(history: Sequence[Message]) -> list[ChatMessage]:
    """Convert a dialogue to chat messages."""
    return [ChatMessage(message.role, message.text) for message in history]

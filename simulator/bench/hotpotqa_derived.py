"""HotPotQA-derived: right answers, and wrong ones that a model writes (LogicGraph's section 4.1, appendix E).

The paper's 72,391 examples are not published; this builds the like of them from HotpotQA and any served
model. The passages stay apart, so that a detector has to put together what answers a question.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from agents.errors import ModelError
from agents.model import ModelPool, Session
from agents.prompt import load_prompt
from detectors.spans import words
from scenarios.labelled import LabelledData, LabelledReply
from scenarios.loaders.hotpotqa import HotpotQuestion

DATASET = "hotpotqa-derived"
"""Name of the data set in its replies."""

TRIES = 6
"""Answers asked for at most: the likeliest, as in the paper, then sampled ones."""
TEMPERATURE = 0.9
"""Of the sampled ones."""
MAX_TOKENS = 48
"""Limit of an answer; HotpotQA's are short."""

COMPARISON = "comparison question"
"""Why a question is left out: the paper takes those where one paragraph leads to the other."""
NO_VARIANT = "no hallucinated answer passed the checks"
"""Why a question is left out: of all tries, each was refused."""
NO_ANSWER = "the model gave no answer"
"""Why a question is left out: a request failed."""

Pairing = Literal["random", "both"]
"""A question with its right or its wrong answer, at random as in the paper, or once with each."""

_ARTICLES = frozenset({"a", "an", "the"})
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|hundred|thousand|million|billion)\b",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"\b[A-Z]")
_HEADING = re.compile(r"\A(?:(?:incorrect|hallucinated) )?answer\s*:\s*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'“‘](.*)[\"'”’]")


async def build_hotpotqa_derived(
    questions: Sequence[HotpotQuestion],
    pool: ModelPool,
    *,
    model: str | None = None,
    seed: int = 0,
    pairing: Pairing = "random",
) -> LabelledData:
    """Labelled replies from HotpotQA's questions; answers to one question are a group.

    A question of which no hallucinated answer can be had is left out, also where its right answer was drawn:
    else the right answers would be those to harder questions.

    Args:
        pool: where the model is that writes.
        model: its name there; None: the default one.
        seed: draws answers, and is the base seed of sampled ones.
        pairing: how many replies a question gives.
    """
    bridges = [question for question in questions if question.type == "bridge"]
    sessions = [pool.session("builder", seed, model) for _ in bridges]
    variants = await asyncio.gather(
        *(
            hallucinated_answer(session, question)
            for session, question in zip(sessions, bridges, strict=True)
        ),
        return_exceptions=True,
    )
    left_out = Counter({COMPARISON: len(questions) - len(bridges)})
    replies: list[LabelledReply] = []
    for question, variant in zip(bridges, variants, strict=True):
        if isinstance(variant, ModelError):
            left_out[NO_ANSWER] += 1
        elif isinstance(variant, BaseException):
            raise variant
        elif variant is None:
            left_out[NO_VARIANT] += 1
        else:
            replies += _drawn(question, variant, seed, pairing)
    return LabelledData(tuple(replies), dict(+left_out))


def _drawn(question: HotpotQuestion, variant: str, seed: int, pairing: Pairing) -> list[LabelledReply]:
    both = [_labelled(question, question.answer, False), _labelled(question, variant, True)]
    if pairing == "both":
        return both
    return [random.Random(f"{seed} {question.id}").choice(both)]  # noqa: S311 - a seeded choice of data


async def hallucinated_answer(session: Session, question: HotpotQuestion) -> str | None:
    """The first answer of the model's that passes `refusal`; None when none does.

    Raises:
        ModelError: a request failed.
    """
    prompt = load_prompt("simulator.bench", "hallucinated_answer")
    context = "\n".join(_paragraph(question, position) for position in sorted(question.supporting))
    messages = prompt.fill(question=question.question, answer=question.answer, context=context)
    for sample in range(TRIES):
        text = await session.text(
            "hallucinate",
            messages,
            temperature=TEMPERATURE if sample else 0.0,
            max_tokens=MAX_TOKENS,
            sample=sample,
        )
        answer = _bare(text, question.answer)
        if refusal(answer, question) is None:
            return answer
    return None


def _paragraph(question: HotpotQuestion, position: int) -> str:
    title, sentences = question.context[position]
    return f"{title}: {''.join(sentences).strip()}"


def _bare(text: str, gold: str) -> str:
    """The first line without what models put around an answer: a heading, quotation marks, a full stop."""
    line = _HEADING.sub("", text.strip().partition("\n")[0], count=1).strip()
    line = line if gold.endswith(".") else line.rstrip(".")
    quoted = _QUOTED.fullmatch(line)
    return quoted[1] if quoted else line


def refusal(answer: str, question: HotpotQuestion) -> str | None:
    """Why an answer is no hallucinated one that tells nothing by its form; None: it is one.

    It must differ from the right one in more than additions and omissions, must not stand in the supporting
    sentences (where it might be right, or be found by any search), and must be of the same kind and about
    as long: a number or date, a name, or a phrase.
    """
    said, right = _content(answer), _content(question.answer)
    if not said:
        return "it is empty"
    if set(said) <= set(right) or set(right) <= set(said):
        return "it says the same as the right answer"
    if f" {' '.join(said)} " in f" {' '.join(_content(_supporting_text(question)))} ":
        return "it stands in the supporting sentences"
    if _kind(answer) != _kind(question.answer):
        return "it is of another kind"
    if len(said) > 2 * len(right) + 1 or 2 * len(said) + 1 < len(right):
        return "it is longer or shorter than the right answer"
    return None


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def _kind(answer: str) -> str:
    if _NUMBER.search(answer):
        return "number"
    return "name" if _CAPITAL.search(answer) else "phrase"


def _supporting_text(question: HotpotQuestion) -> str:
    """The supporting sentences; HotpotQA points at some that do not exist."""
    needed = set(question.supporting_facts)
    return " ".join(
        sentence
        for title, sentences in question.context
        for position, sentence in enumerate(sentences)
        if (title, position) in needed
    )


def _labelled(question: HotpotQuestion, reply: str, hallucinated: bool) -> LabelledReply:
    return LabelledReply(
        id=f"{question.id}-{'hallucinated' if hallucinated else 'faithful'}",
        dataset=DATASET,
        task="qa",
        question=question.question,
        passages=question.passages,
        reply=reply,
        label=hallucinated,
        group=question.id,
        meta={"level": question.level, "gold": question.answer},
    )


def as_jsonl(replies: Sequence[LabelledReply]) -> str:
    """The replies in hallulab's own format for labelled data (docs/labelled-data.md)."""
    lines = [
        {
            "id": reply.id,
            "task": reply.task,
            "question": reply.question,
            "passages": [
                passage.model_dump(include={"id", "document", "text"}) for passage in reply.passages
            ],
            "reply": reply.reply,
            "label": reply.label,
            "group": reply.group,
            "meta": reply.meta,
        }
        for reply in replies
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

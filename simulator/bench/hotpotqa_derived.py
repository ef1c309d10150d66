"""HotPotQA-derived: right answers, and wrong ones that a model writes (LogicGraph's section 4.1, appendix E).

The paper's 72,391 examples are not published. This builds similar ones from HotpotQA and any served model.
The passages stay apart, so a detector has to combine those that answer a question.

The paper's wrong answers use words that no passage has, and that alone gives them away. Misplaced answers,
which are ours, stand in a passage that does not answer the question.
"""

from __future__ import annotations

import asyncio
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage, load_prompt
from hallulab.agents.models.session import Session
from hallulab.scenarios.datasets.hotpotqa import HotpotQuestion
from hallulab.scenarios.labelled import LabelledData, LabelledReply
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.bench.answers import NUMBER_WORDS, extract_content, is_same_answer
from hallulab.simulator.options.data import Wrong

DATASET = "hotpotqa-derived"

TRIES = 6
"""Largest number of answers asked for.

- Invented ones: the likeliest, as in the paper, then sampled ones.
- Misplaced ones: the likeliest from each of so many passages, first those that share most with the question.
"""
TEMPERATURE = 0.9
MAX_TOKENS = 48
"""Limit of an answer; HotpotQA's are short."""

COMPARISON = "comparison question"
"""Why a question is left out: the paper only takes questions where one paragraph leads to the other."""
NO_VARIANT = "no hallucinated answer passed the checks"
NO_ANSWER = "the model gave no answer"

_ARTICLES = frozenset({"a", "an", "the"})
_KINDS_ASKED = {"number": "number or date", "name": "name", "phrase": "phrase"}
_CAPITAL = re.compile(r"\b[A-Z]")
_NO_TEXT = re.compile(
    r"<\|[^|>]*\|>|</?(?:s|bos|eos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]|^```\w*$", re.MULTILINE
)
"""Tokens that end or begin a text, and fences of code."""
_WRAPPERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:#{1,6}|>|[-*+•–—]|\d{1,2}[.)])\s+(.*)",
        r"(?:(?:\w+ )?answer\s*(?:[:=]|[-–—]\s)|a:)\s*(.*)",
        r"(?:\*{1,3}|_{1,3})(.*?)(?:\*{1,3}|_{1,3})",
        r"[\"“„«'‘]([^\"“”„«»]*)[\"”“»'’]",
    )
)
"""Decoration that models put around an answer: a list's or heading's mark, `Answer:`, emphasis, quotes."""
_TALK = re.compile(
    r"\b(?:answers?|incorrect|hallucinat\w*|sorry|unknown|not (?:given|known|mentioned|specified|stated))\b"
    r"|\A(?:it|this|that|he|she|they|there)(?: is| are| was| were|['’]s)\b"
    r"|\AI(?: am| do| can|['’]m)|\A(?:sure|certainly|of course|okay)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Derived:
    """Result of a build."""

    data: LabelledData
    """The labelled replies, and the number of questions left out by reason."""
    refused: Mapping[str, int]
    """Reason of a check → number of refused answers, over the questions left out as `NO_VARIANT`."""
    first_error: str | None


@dataclass(frozen=True)
class _Tried:
    """Result of asking for a hallucinated answer to one question."""

    variant: str | None = None
    refused: tuple[str, ...] = ()
    error: str | None = None


async def build_hotpotqa_derived(
    questions: Sequence[HotpotQuestion],
    pool: ModelPool,
    *,
    wrong: Wrong = "invented",
    seed: int = 0,
    both: bool = False,
    on_done: Callable[[], object] = lambda: None,
) -> Derived:
    """Build labelled replies from HotpotQA's questions. Answers to one question are a group.

    A question without a hallucinated answer is left out, even where its right answer was chosen. Else the
    right answers would belong to harder questions.

    Args:
        seed: chooses answers, and is the base seed of sampled ones.
        both: whether a question gives both of its answers, or one of them, at random as in the paper.
        on_done: called after every question.
    """

    async def try_one(question: HotpotQuestion) -> _Tried:
        tried = _Tried()
        if question.type == "bridge":
            tried = await _generate_wrong_answer(pool.session("builder", seed), question, wrong)
        on_done()
        return tried

    outcomes = await asyncio.gather(*(try_one(question) for question in questions))
    left_out: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    replies: list[LabelledReply] = []
    for question, tried in zip(questions, outcomes, strict=True):
        if question.type != "bridge":
            left_out[COMPARISON] += 1
        elif tried.error is not None:
            left_out[NO_ANSWER] += 1
        elif tried.variant is None:
            left_out[NO_VARIANT] += 1
            refused.update(tried.refused)
        else:
            answers = [
                _label_reply(question, question.answer, False),
                _label_reply(question, tried.variant, True),
            ]
            drawn = random.Random(f"{seed} {question.id}")  # noqa: S311 - a seeded choice of data
            replies += answers if both else [drawn.choice(answers)]
    errors = (tried.error for tried in outcomes if tried.error is not None)
    return Derived(LabelledData(tuple(replies), dict(left_out)), dict(refused), next(errors, None))


def list_left_out(derived: Derived) -> list[str]:
    """List how many questions were left out, one line a reason."""
    causes = "; ".join(f"{number}: {reason}" for reason, number in derived.refused.items())
    more = {
        NO_VARIANT: f" (of {sum(derived.refused.values())} answers {causes})",
        NO_ANSWER: f" (first error: {derived.first_error})",
    }
    return [
        f"{format_count(number, 'question')} left out: {reason}{more.get(reason, '')}"
        for reason, number in derived.data.left_out.items()
    ]


async def _generate_wrong_answer(session: Session, question: HotpotQuestion, wrong: Wrong) -> _Tried:
    """Return the model's first answer that passes `explain_refusal`, if any."""
    refused: list[str] = []
    for messages, sample in (_prompt_invented if wrong == "invented" else _prompt_misplaced)(question):
        try:
            text = await session.text(
                "hallucinate",
                messages,
                temperature=TEMPERATURE if sample else 0.0,
                max_tokens=MAX_TOKENS,
                sample=sample,
            )
        except ModelError as error:
            return _Tried(error=str(error))
        answer = _strip_decoration(text, question.answer)
        reason = explain_refusal(answer, question, wrong)
        if reason is None:
            return _Tried(answer)
        refused.append(reason)
    return _Tried(refused=tuple(refused))


def _prompt_invented(question: HotpotQuestion) -> Iterator[tuple[list[ChatMessage], int]]:
    """Yield what each try asks, and the number of the sample; 0: the likeliest answer."""
    prompt = load_prompt("hallulab.simulator.bench", "hallucinated_answer")
    context = "\n".join(_format_paragraph(question, position) for position in sorted(question.supporting))
    messages = prompt.fill(question=question.question, answer=question.answer, context=context)
    for sample in range(TRIES):
        yield messages, sample


def _prompt_misplaced(question: HotpotQuestion) -> Iterator[tuple[list[ChatMessage], int]]:
    """Yield the same for answers from the other passages.

    The right answer is not shown, because a small model would repeat it.
    """
    prompt = load_prompt("hallulab.simulator.bench", "misplaced_answer")
    asked = set(split_words(question.question))

    def count_shared(position: int) -> int:
        return len(asked & set(split_words(_format_paragraph(question, position))))

    others = [at for at in range(len(question.context)) if at not in question.supporting]
    for position in sorted(others, key=count_shared, reverse=True)[:TRIES]:
        messages = prompt.fill(
            passage=_format_paragraph(question, position),
            question=question.question,
            kind=_KINDS_ASKED[_determine_kind(question.answer)],
        )
        yield messages, 0


def _format_paragraph(question: HotpotQuestion, position: int) -> str:
    title, sentences = question.context[position]
    return f"{title}: {''.join(sentences).strip()}"


def _strip_decoration(text: str, gold: str) -> str:
    """Return the first line, without decoration that the right answer lacks."""
    parts = (part.strip() for part in _NO_TEXT.split(text))
    line = next((part for part in parts if part), "").partition("\n")[0].strip()
    before = None
    while line != before:
        before = line
        for mark in ("**", "`"):
            line = line if mark in gold else line.replace(mark, "")
        line = line if gold.endswith(".") else line.rstrip(".")
        for wrapper in _WRAPPERS:
            found = wrapper.fullmatch(line)
            if found and not wrapper.fullmatch(gold):
                line = found[1].strip()
    return line


def explain_refusal(answer: str, question: HotpotQuestion, wrong: Wrong = "invented") -> str | None:
    """Say why an answer is not a good hallucinated one; None: it is.

    A good answer gives nothing away by its form:

    - It differs from the right one by more than additions, omissions and spelling (`same_answer`).
    - It is not in the supporting sentences, where it might be right, or be found by any search.
    - It comes without words about it, such as `(incorrect)`, and without marks that the right one lacks.
    - It is of the same kind (a number or date, a name, or a phrase) and about as long.
    - A misplaced one is in a passage that supports nothing, and in none that does.
    """
    said = extract_content(answer)
    if not said:
        return "it is empty"
    if is_same_answer(answer, question.answer):
        return "it says the same as the right answer"
    if _is_in_text(_join_supporting(question), said):
        return "it stands in the supporting sentences"
    if wrong == "misplaced":
        homes = [
            at for at in range(len(question.context)) if _is_in_text(_format_paragraph(question, at), said)
        ]
        if not homes:
            return "it stands in no passage"
        if not question.supporting.isdisjoint(homes):
            return "it stands in a supporting passage"
    if _is_decorated(answer, question.answer):
        return "it comes with words or marks that the right answer has not"
    if _determine_kind(answer) != _determine_kind(question.answer):
        return "it is of another kind"
    length, right = len(_drop_articles(answer)), len(_drop_articles(question.answer))
    if length > 2 * right + 1 or 2 * length + 1 < right:
        return "it is longer or shorter than the right answer"
    return None


def _is_in_text(text: str, said: Sequence[str]) -> bool:
    """Return whether the words stand in the text, one after the other."""
    return f" {' '.join(said)} " in f" {' '.join(extract_content(text))} "


def _is_decorated(answer: str, gold: str) -> bool:
    """Return whether the answer begins or ends with a mark that the right one lacks, or speaks of itself."""
    if _TALK.search(answer) and not _TALK.search(gold):
        return True
    return any(_is_mark(answer[at]) and answer[at] != gold[at] for at in (0, -1))


def _is_mark(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] not in "LMN" and category != "Sc" and character != "%"


def _drop_articles(text: str) -> list[str]:
    return [word for word in split_words(text) if word not in _ARTICLES]


def _determine_kind(answer: str) -> str:
    if any(map(str.isdigit, answer)) or not NUMBER_WORDS.isdisjoint(split_words(answer)):
        return "number"
    return "name" if _CAPITAL.search(answer) else "phrase"


def _join_supporting(question: HotpotQuestion) -> str:
    """Return the supporting sentences. HotpotQA names some that do not exist."""
    needed = set(question.supporting_facts)
    return " ".join(
        sentence
        for title, sentences in question.context
        for position, sentence in enumerate(sentences)
        if (title, position) in needed
    )


def _label_reply(question: HotpotQuestion, reply: str, hallucinated: bool) -> LabelledReply:
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

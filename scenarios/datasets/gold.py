"""Annotated runs of hallulab: the hallucinated words of each reply, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field

from hallulab.scenarios.datasets.loader import (
    SCHEMA,
    DatasetInfo,
    LoadRequest,
    locate_quotations,
    make_repeated_id_error,
)
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_records
from hallulab.scenarios.labelled import ChatbotTurn, GoldSpan, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Conversation, Frozen, Turn

ANNOTATIONS = "annotations.jsonl"
"""The file with the annotations, in the run's folder."""

CONVERSATIONS = "conversations.jsonl"
"""The run's journal."""

_UNLABELLED = "unlabelled"
_NO_EVIDENCE = "no evidence"


class _Quotation(Frozen):
    """A quotation that annotators consider hallucinated."""

    quote: str = Field(min_length=1)
    """The words of the reply, verbatim."""
    severity: int = Field(ge=1, le=5)
    """1 (harmless) to 5 (critical)."""
    reason: str = ""
    """Why."""


class _Annotation(Frozen):
    """A line of the file: the annotation of a turn."""

    conversation: str
    """Identifier of the conversation."""
    turn: int = Field(ge=0)
    """Index of the turn."""
    key: str = Field(min_length=1)
    """Shared by equal replies to the same question with the same evidence, in any conversation."""
    spans: tuple[_Quotation, ...]
    """The hallucinations; `[]`: none."""
    claims: bool = True
    """Whether the reply makes a claim that could be wrong."""


def load_gold(request: LoadRequest) -> LabelledData:
    """Load the annotated replies of one or several runs. A persona is a group.

    Replies with the same key become one reply: `turns` has all its turns, and `meta` describes the first.
    Turns without annotation or evidence are left out and counted.

    Args:
        request: its folder is a run folder with `conversations.jsonl` and `annotations.jsonl`, or holds such
            folders; there are no parts.

    Raises:
        UsageError: the request, or a line of a file, is wrong.
    """
    request.without_parts()
    replies: dict[str, LabelledReply] = {}
    left_out: Counter[str] = Counter()
    for folder in _find_run_folders(request):
        annotations = _read_annotations(folder / ANNOTATIONS)
        for conversation, turn in _read_turns(_find_journals(request.dataset, folder)):
            number, annotation = annotations.pop((conversation.id, turn.index), (0, None))
            if annotation is None:
                left_out[_UNLABELLED] += 1
            elif not any(passage.text for passage in turn.passages):
                left_out[_NO_EVIDENCE] += 1
            else:
                place = f"{folder / ANNOTATIONS}, line {number}"
                found = _label_turn(conversation, turn, annotation, request.dataset, place)
                replies[found.id] = _merge_replies(replies.get(found.id), found, place)
        for (conversation_id, index), (number, _) in annotations.items():
            raise _make_no_turn_error(f"{folder / ANNOTATIONS}, line {number}", conversation_id, index)
    return LabelledData(tuple(replies.values()), dict(left_out))


def read_annotated_turns(
    path: Path, conversations: Iterable[Conversation]
) -> dict[tuple[str, int], tuple[GoldSpan, ...]]:
    """Read what people found in the turns of a run that they looked at, by conversation and turn.

    A turn with a line was looked at; no spans: nothing was found. Turns without a line are not there.

    Raises:
        UsageError: a line is wrong, or about a turn that the run does not have.
    """
    annotations = _read_annotations(path)
    turns = {
        (each.id, turn.index): turn.reply
        for each in conversations
        for turn in each.turns
        if (each.id, turn.index) in annotations
    }
    found = {}
    for (conversation, index), (number, annotation) in annotations.items():
        place = f"{path}, line {number}"
        reply = turns.get((conversation, index))
        if reply is None:
            raise _make_no_turn_error(place, conversation, index)
        found[conversation, index] = _find_spans(reply, annotation, place)
    return found


def _make_no_turn_error(place: str, conversation: str, index: int) -> UsageError:
    return UsageError(
        f"{place}: {CONVERSATIONS} has no turn {index} of conversation {conversation}. Correct or delete the "
        "line."
    )


def _find_run_folders(request: LoadRequest) -> list[Path]:
    """Return the run folder, or the run folders inside the given folder."""
    inside = [] if request.data is None else sorted(request.data.glob(f"*/{ANNOTATIONS}"))
    if request.data is not None and inside and not (request.data / ANNOTATIONS).is_file():
        return [path.parent for path in inside]
    return [request.file(ANNOTATIONS).parent]


def _read_annotations(path: Path) -> dict[tuple[str, int], tuple[int, _Annotation]]:
    """Read annotations and their line numbers, by conversation and turn."""
    found: dict[tuple[str, int], tuple[int, _Annotation]] = {}
    for number, annotation in read_records(path, _Annotation, SCHEMA):
        key = (annotation.conversation, annotation.turn)
        if key in found:
            raise UsageError(
                f"{path}, line {number}: turn {annotation.turn} of conversation {annotation.conversation} "
                f"is annotated in line {found[key][0]}, too. Delete one of them."
            )
        found[key] = (number, annotation)
    return found


def _find_journals(dataset: str, folder: Path) -> list[Path]:
    """Return the journal of conversations in a run folder, or its shards."""
    shards = sorted(folder.glob("conversations-[0-9][0-9].jsonl"))
    return shards or [LoadRequest(dataset, folder).file(CONVERSATIONS)]


def _read_turns(paths: Iterable[Path]) -> Iterator[tuple[Conversation, Turn]]:
    seen: set[str] = set()
    for path in paths:
        for number, conversation in read_records(path, Conversation, SCHEMA):
            if conversation.id in seen:
                raise make_repeated_id_error(path, number, conversation.id)
            seen.add(conversation.id)
            for turn in conversation.turns:
                yield conversation, turn


def _label_turn(
    conversation: Conversation, turn: Turn, annotation: _Annotation, dataset: str, place: str
) -> LabelledReply:
    spans = _find_spans(turn.reply, annotation, place)
    return LabelledReply(
        id=annotation.key,
        dataset=dataset,
        task="dialogue",
        question=turn.user,
        history=conversation.history(turn.index),
        passages=turn.passages,
        reply=turn.reply,
        label=bool(spans),
        spans=spans,
        turns=(ChatbotTurn(chatbot=conversation.chatbot, conversation=conversation.id, turn=turn.index),),
        group=conversation.persona,
        meta={
            "chatbot": conversation.chatbot,
            "conversation": conversation.id,
            "turn": turn.index,
            "scenario": conversation.scenario,
            "model": conversation.model,
        },
    )


def _find_spans(reply: str, annotation: _Annotation, place: str) -> tuple[GoldSpan, ...]:
    """Find the quotations of an annotation in the reply."""
    spans = []
    quotes = [span.quote for span in annotation.spans]
    for quote, found in zip(quotes, locate_quotations(reply, quotes), strict=True):
        if found is None:
            how = "is given more often than it stands" if quote in reply else "does not stand"
            raise UsageError(f"{place}: spans: the quotation {quote!r} {how} in the reply. Correct it.")
        spans.append(GoldSpan(start=found[0], end=found[1]))
    return tuple(spans)


def _merge_replies(known: LabelledReply | None, found: LabelledReply, place: str) -> LabelledReply:
    """Return the known reply with one more turn; refuse it if the two differ."""
    if known is None:
        return found
    for what, one, other in (
        ("reply", known.reply, found.reply),
        ("question", known.question, found.question),
        (
            "evidence",
            [passage.text for passage in known.passages],
            [passage.text for passage in found.passages],
        ),
        ("annotation", known.spans, found.spans),
    ):
        if one != other:
            first = known.turns[0]
            raise UsageError(
                f"{place}: key: turn {first.turn} of conversation {first.conversation} has the same key "
                f"{found.id}, and another {what}. Give each its own key."
            )
    return known.model_copy(update={"turns": (*known.turns, *found.turns)})


INFO = DatasetInfo(
    load=load_gold,
    levels=("reply", "span"),
)

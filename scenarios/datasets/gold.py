"""Annotated runs of hallulab: the hallucinated words of each reply, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hallulab.scenarios.datasets.annotations import (
    ANNOTATIONS,
    CONVERSATIONS,
    Annotation,
    choose_lines,
    find_spans,
    leave_out_unknown,
    make_no_turn_error,
    read_annotations,
)
from hallulab.scenarios.datasets.loader import SCHEMA, DatasetInfo, LoadRequest, make_repeated_id_error
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import read_appended_records
from hallulab.scenarios.labelled import ChatbotTurn, LabelledData, LabelledReply
from hallulab.scenarios.transcript import Conversation, Turn

_UNLABELLED = "unlabelled"
_NO_EVIDENCE = "no evidence"


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
    owners: dict[str, Path] = {}
    inside = [] if request.data is None else sorted(request.data.glob(f"*/{ANNOTATIONS}"))
    is_run = request.data is None or not inside or (request.data / ANNOTATIONS).is_file()
    for path in [request.file(ANNOTATIONS)] if is_run else inside:
        folder = path.parent
        lines = leave_out_unknown(read_annotations(folder / ANNOTATIONS))
        chosen = choose_lines(line for _, line in lines)
        annotations = {place: lines[at] for place, at in chosen.items()}
        shards = sorted(folder.glob("conversations-[0-9][0-9].jsonl"))
        journals = shards or [LoadRequest(request.dataset, folder).file(CONVERSATIONS)]
        for conversation, turn in _read_turns(journals):
            found_line = annotations.pop((conversation.id, turn.index), None)
            if found_line is None:
                left_out[_UNLABELLED] += 1
            elif not any(passage.text for passage in turn.passages):
                left_out[_NO_EVIDENCE] += 1
            else:
                owner = owners.setdefault(conversation.id, folder)
                if owner != folder:
                    raise UsageError(
                        f"{folder}: conversation {conversation.id} is annotated in {owner}, too, as the two "
                        "runs are of one experiment. Measure on one of them at a time."
                    )
                number, annotation = found_line
                place = f"{folder / ANNOTATIONS}, line {number}"
                found = _label_turn(conversation, turn, annotation, request.dataset, place)
                replies[found.id] = _merge_replies(replies.get(found.id), found, place)
        for (conversation_id, index), (number, _) in annotations.items():
            raise make_no_turn_error(f"{folder / ANNOTATIONS}, line {number}", conversation_id, index)
    return LabelledData(tuple(replies.values()), dict(left_out))


def _read_turns(paths: Iterable[Path]) -> Iterator[tuple[Conversation, Turn]]:
    seen: set[str] = set()
    for path in paths:
        for number, conversation in read_appended_records(path, Conversation, SCHEMA):
            if conversation.id in seen:
                raise make_repeated_id_error(path, number, conversation.id)
            seen.add(conversation.id)
            for turn in conversation.turns:
                yield conversation, turn


def _label_turn(
    conversation: Conversation, turn: Turn, annotation: Annotation, dataset: str, place: str
) -> LabelledReply:
    spans = find_spans(turn.reply, annotation, place)
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


def _merge_replies(known: LabelledReply | None, found: LabelledReply, place: str) -> LabelledReply:
    """Return the known reply with one more turn; refuse it if the two differ."""
    if known is None:
        return found
    parts = ("reply", "question", "evidence", "annotation")
    ours, theirs = (
        (one.reply, one.question, [passage.text for passage in one.passages], one.spans)
        for one in (known, found)
    )
    for what, one, other in zip(parts, ours, theirs, strict=True):
        if one != other:
            first = known.turns[0]
            raise UsageError(
                f"{place}: key: turn {first.turn} of conversation {first.conversation} has the same key "
                f"{found.id}, and another {what}. Give each its own key."
            )
    return known.model_copy(update={"turns": (*known.turns, *found.turns)})


INFO = DatasetInfo(load=load_gold, levels=("reply", "span"))

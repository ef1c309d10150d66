"""Material for planted errors from a run: its clean replies, and what the passages of its turns say."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.library import find_whole_sentences
from hallulab.simulator.runs.folder import RunFolder
from hallulab.simulator.stress.material import Clean, join_some, strip_title


def load_turns(run: RunFolder) -> list[LabelledReply]:
    """Return the run's replies that were given passages.

    The label is False where the reply was judged and no detector flags anything in it; else None.
    """
    journals = run.read_journals().current(run.read_experiment())
    verdicts = journals.verdicts
    scored = {(one.conversation, one.turn) for one in verdicts if one.outcome == "scored"}
    flagged = {(one.conversation, one.turn) for one in verdicts if one.flagged or one.spans}
    return [
        LabelledReply(
            id=f"{conversation.id}-{turn.index}",
            dataset=run.path.name,
            task="dialogue",
            question=turn.user,
            history=tuple(conversation.history(turn.index)),
            passages=turn.passages,
            reply=turn.reply,
            label=False if (conversation.id, turn.index) in scored - flagged else None,
            group=conversation.persona,
        )
        for conversation in journals.conversations
        for turn in conversation.turns
        if turn.reply and turn.passages
    ]


def generate_quoting_replies(turns: Sequence[LabelledReply], seed: int) -> Iterator[Clean]:
    """Yield replies that say what a passage of their turn says, in its own sentences, without end.

    Question, history and passages are the turn's. None is yielded where no passage has a whole sentence.
    """
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    usable = [
        (turn, passage, said)
        for turn in turns
        for passage in turn.passages
        if (said := find_whole_sentences(strip_title(passage)))
    ]
    while usable:
        turn, passage, said = generator.choice(usable)
        yield Clean(
            id=f"{turn.id} {passage.id}",
            question=turn.question,
            history=turn.history,
            passages=turn.passages,
            reply=join_some(said[generator.randrange(len(said)) :], generator),
            group=passage.document,
        )

"""The replies of simulated dialogues as labelled data: unlabelled, with a planted error, and its clean twin.

A dialogue that gets an error ends with it: the turns before it stay as they were simulated. In place of the
chatbot's reply stand sentences of the passage that the turn's search found first. So the twin is right by its
evidence. The chatbots' own replies may be right or wrong, so they have no label.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.edits import SentenceBank, collect_sentences
from hallulab.scenarios.transcript import Conversation, Turn
from hallulab.simulator.bench.split import SPLIT
from hallulab.simulator.planting.draws import QuotaCell
from hallulab.simulator.planting.kinds import KINDS
from hallulab.simulator.planting.material import generate_quoting_replies
from hallulab.simulator.planting.plant import RULES, build_labelled_pair, is_sound
from hallulab.simulator.planting.sides import PackSide

PLANTED, TWIN, UNLABELLED = "planted", "twin", "unlabelled"
"""Values of `meta.labelled_by`."""
DIALOGUE_KINDS = tuple(kind for kind in KINDS if kind not in ("yes-for-no", "contradiction"))
"""Kinds of errors for dialogues: the other two change what the user or the chatbot said before."""
_TRIES = 60
"""Quotations of a dialogue that are tried for an error of a kind."""


@dataclass(frozen=True)
class SimulatedDialogue:
    """A dialogue of the data set."""

    cell: QuotaCell
    conversation: Conversation
    persona: str
    """The pack's persona, whatever part of its goals it had."""


class ErrorPlanter:
    """Plants errors into dialogues, each kind in turn; no planted reply is written twice.

    Args:
        sides: the packs. Sentences that errors are made of come from the dialogue's own side.
        kinds: names of `RULES`.
    """

    def __init__(self, sides: Mapping[str, PackSide], kinds: Sequence[str], seed: int) -> None:
        self._banks = {name: collect_sentences(side.scenario.documents) for name, side in sides.items()}
        self._kinds = list(kinds)
        self._seed = seed
        self._seen: set[str] = set()

    def plant(self, dialogue: SimulatedDialogue) -> list[LabelledReply] | None:
        """Return the dialogue up to an error, and the error's twin; None: no error has a place in it.

        The kind whose turn it is comes first. One that has no place here keeps its turn.
        """
        for kind in list(self._kinds):
            planted = self._plant_kind(dialogue, kind, self._banks[dialogue.cell.side])
            if planted is not None:
                self._kinds.remove(kind)
                self._kinds.append(kind)
                return planted
        return None

    def _plant_kind(
        self, dialogue: SimulatedDialogue, kind: str, bank: SentenceBank
    ) -> list[LabelledReply] | None:
        conversation = dialogue.conversation
        replies = list(build_replies(dialogue))
        places = {reply.id: place for place, reply in enumerate(replies)}
        generator = random.Random(f"{self._seed} {conversation.id} {kind}")  # noqa: S311 - a seeded choice of data
        quotations = generate_quoting_replies(replies, generator.randrange(2**31))
        for clean in islice(quotations, _TRIES):
            name, _, passage = clean.id.partition(" ")
            place = places[name]
            if passage != replies[place].passages[0].id:
                continue
            planted = RULES[kind](clean, bank, generator)
            if planted is None or planted.reply in self._seen or not is_sound(kind, planted):
                continue
            self._seen |= {planted.reply}
            wrong, twin = build_labelled_pair(f"{name}-planted", kind, planted, "rules")
            added = {
                "kind": kind,
                "source": passage,
                # Behind the error, both replies are equal.
                "true_text": clean.reply[planted.start : len(clean.reply) - len(planted.reply) + planted.end],
            }
            return [
                *replies[:place],
                _describe(wrong, replies[place], {**added, "labelled_by": PLANTED, "twin": twin.id}),
                _describe(twin, replies[place], {**added, "labelled_by": TWIN, "twin": wrong.id}),
            ]
        return None


def _describe(labelled: LabelledReply, simulated: LabelledReply, added: Mapping[str, str]) -> LabelledReply:
    """Return a labelled reply with what is known of the turn in whose place it stands."""
    return labelled.model_copy(update={"group": simulated.group, "meta": {**simulated.meta, **added}})


def build_replies(dialogue: SimulatedDialogue) -> Iterator[LabelledReply]:
    """Yield the replies of a dialogue that have evidence, unlabelled."""
    for turn in dialogue.conversation.turns:
        if turn.reply and turn.passages:
            yield _build_reply(dialogue, turn)


def _build_reply(dialogue: SimulatedDialogue, turn: Turn) -> LabelledReply:
    one, cell = dialogue.conversation, dialogue.cell
    return LabelledReply(
        id=f"{one.id}-{turn.index}",
        dataset="dialogues",
        task="dialogue",
        question=turn.user,
        history=one.history(turn.index),
        passages=tuple(passage.model_copy(update={"score": None}) for passage in turn.passages),
        reply=turn.reply,
        label=None,
        group=dialogue.persona,
        meta={
            "conversation": one.id,
            SPLIT: cell.side,
            "labelled_by": UNLABELLED,
            "persona": dialogue.persona,
            "topic": cell.topic,
            "manner": cell.manner,
            "goals": cell.goals,
            "seed": one.seed,
            "turn": turn.index,
            "context": len(turn.passages),
            "chatbot": one.chatbot,
            "model": one.model,
            "scenario": one.scenario,
            # Of planted errors and their twins; all rows have the same keys, as tables want them.
            "kind": None,
            "true_text": None,
            "source": None,
            "twin": None,
        },
    )

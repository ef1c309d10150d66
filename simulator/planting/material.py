"""Material for planted errors: clean replies of labelled data or of a run."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.files.data_files import expand_home, is_file, is_folder, is_there
from hallulab.scenarios.files.json_text import replace_surrogates
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.near_names import suggest_name
from hallulab.scenarios.packs.documents import Boundary, read_documents
from hallulab.scenarios.packs.labels import DocumentDefaults
from hallulab.scenarios.packs.pack import Document, TopicThreshold
from hallulab.scenarios.packs.pack_files import SCENARIO_FILE, list_built_in_packs, load_scenario
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.scenarios.text.edits import SentenceBank, collect_sentences, find_whole_sentences
from hallulab.scenarios.text.languages import ENGLISH, identify_language
from hallulab.scenarios.transcript import Message, Passage
from hallulab.simulator.records.folder import RunFolder

_SENTENCES = 3


@dataclass(frozen=True)
class Clean:
    """A reply that says nothing but what its evidence says."""

    id: str
    question: str
    history: tuple[Message, ...]
    passages: tuple[Passage, ...]
    reply: str
    group: str
    """The document, or the group of the labelled data."""

    @property
    def turn(self) -> int:
        """Number of turns before this one."""
        return len(self.history) // 2

    @cached_property
    def evidence(self) -> str:
        """All passages as one text."""
        return "\n".join(passage.text for passage in self.passages)

    @cached_property
    def known(self) -> str:
        """Everything that the evidence and the user say."""
        return "\n".join([self.evidence, self.question, *(message.text for message in self.history)])


def build_sentence_bank(replies: Sequence[LabelledReply]) -> SentenceBank:
    """Return the sentences of all evidence, by document."""
    known = {passage.text: passage for reply in replies for passage in reply.passages}
    return SentenceBank(
        tuple(
            (one.document, sentence) for one in known.values() for sentence in find_whole_sentences(one.text)
        )
    )


def is_in_english(text: str) -> bool:
    """Return whether a text may be English, the only language that the rules of errors know."""
    return identify_language(text) in (ENGLISH, None)


def generate_clean_replies(replies: Sequence[LabelledReply], seed: int) -> Iterator[Clean]:
    """Yield the replies that are labelled clean, in the seed's order, without end.

    Raises:
        UsageError: there is none.
    """
    clean = [one for one in replies if one.label is False and one.passages and is_in_english(one.reply)]
    if not clean:
        raise UsageError("no reply in English is clean, so there is nothing to plant errors into.")
    generator = random.Random(seed)  # noqa: S311 - a seeded choice of data
    while True:
        for reply in generator.sample(clean, len(clean)):
            yield Clean(
                reply.id, reply.question, reply.history, reply.passages, reply.reply, group=reply.group
            )


def generate_grounded_replies(
    documents: Sequence[Document], turns: int, context: int, seed: int
) -> Iterator[Clean]:
    """Yield replies made of the documents' own sentences: one to three of a passage, in order; without end.

    Args:
        turns: how many turns come before the reply.
        context: how many passages the evidence has; the others are of the same document where it has them.

    Raises:
        UsageError: no passage of the documents has a whole sentence.
    """
    generator = random.Random(f"{seed} {turns} {context}")  # noqa: S311 - a seeded choice of data
    shelf = [(document, passage) for document in documents for passage in cut_into_passages(document)]
    usable = [
        (document, passage) for document, passage in shelf if find_whole_sentences(strip_title(passage))
    ]
    if not usable:
        raise UsageError("the documents have no whole sentence in English to make replies of.")
    while True:
        document, passage = usable[generator.randrange(len(usable))]
        said = find_whole_sentences(strip_title(passage))
        first = generator.randrange(len(said))
        others = [one for one in usable if one[1].id != passage.id]
        generator.shuffle(others)
        others.sort(key=lambda one: one[0].name != document.name)
        evidence = [passage, *(one for _, one in others[: context - 1])]
        generator.shuffle(evidence)
        history = []
        for about, told in others[:turns]:
            answer = " ".join(find_whole_sentences(strip_title(told))[:2])
            history.append(Message(role="user", text=_ask_about(about)))
            history.append(Message(role="assistant", text=answer))
        yield Clean(
            id=passage.id,
            question=_ask_about(document),
            history=tuple(history),
            passages=tuple(evidence),
            reply=join_some(said[first:], generator),
            group=document.name,
        )


def build_grounded_streams(
    documents: Sequence[Document], turns: Sequence[int], contexts: Sequence[int], seed: int
) -> list[Iterator[Clean]]:
    """Return `generate_grounded_replies` for each number of turns with each number of passages."""
    return [generate_grounded_replies(documents, *cell, seed) for cell in product(turns, contexts)]


def join_some(said: Sequence[str], generator: random.Random) -> str:
    """Return the first one to three sentences, as a reply."""
    return " ".join(said[: generator.randint(1, _SENTENCES)])


def strip_title(passage: Passage) -> str:
    """Return a passage without its first line, the title; one of a single line is returned whole."""
    return passage.text.partition("\n")[2] or passage.text


def _ask_about(document: Document) -> str:
    return f"What applies to this: {document.title}?"


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
            dataset=replace_surrogates(run.path.name),
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
        if is_in_english(passage.text) and (said := find_whole_sentences(strip_title(passage)))
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


Material = tuple[Sequence[Iterator[Clean]], SentenceBank]
"""Replies to plant into, and the sentences that errors are taken from."""


def is_of_replies(source: str, read: Material) -> bool:
    """Return whether errors are planted into replies of chatbots, and not into sentences of documents alone.

    Args:
        source: its path.
        read: what `load_material` read of it; of a run without a clean reply it is quotations alone.
    """
    path = expand_home(source)
    is_run = is_folder(path) and RunFolder(path).has_journal
    return is_file(path) or (is_run and len(read[0]) > 1)


def load_material(source: str, turns: Sequence[int], contexts: Sequence[int], seed: int) -> Material:
    """Read a source. Arguments as in `PlantOptions`.

    Raises:
        UsageError: the source does not exist, or is wrong.
    """
    path = expand_home(source)
    if is_folder(path) and RunFolder(path).has_journal:
        said = load_turns(RunFolder(path))
        clean = any(turn.label is False for turn in said)
        streams = [generate_clean_replies(said, seed)] if clean else []
        return [*streams, generate_quoting_replies(said, seed)], build_sentence_bank(said)
    if is_file(path):
        replies = list(load_labelled(source))
        return [generate_clean_replies(replies, seed)], build_sentence_bank(replies)
    documents = [one for one in _load_documents(source, path) if is_in_english(one.text)]
    return build_grounded_streams(documents, turns, contexts, seed), collect_sentences(documents)


def load_topic_thresholds(source: str) -> dict[str, TopicThreshold]:
    """Return the stricter thresholds of a scenario pack by topic; none of any other source.

    Raises:
        UsageError: the pack is wrong.
    """
    path = expand_home(source)
    if source in list_built_in_packs() or (is_folder(path) and is_there(path / SCENARIO_FILE)):
        return load_scenario(source).identity_thresholds
    return {}


def _load_documents(source: str, path: Path) -> Sequence[Document]:
    """Return the documents of a pack, or of a folder that is none."""
    packs = list_built_in_packs()
    if source in packs or is_there(path / SCENARIO_FILE):
        return load_scenario(source).documents
    if not is_folder(path):
        raise UsageError(
            f"{source}: no such scenario pack, folder of documents, run folder or labelled file"
            f"{suggest_name(source, packs)}. The packs that come with hallulab: {', '.join(packs)}."
        )
    return read_documents(path, DocumentDefaults(), Boundary(path))

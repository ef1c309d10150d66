"""How far the rules can be trusted that say what documents support (docs/studies/blame.md).

`python -m benchmarks.blame_support` measures on the samples of labelled data in the repository;
`--data DIR` on whole data sets in the folders `gold`, `wice`, `begin` and `ragtruth` of DIR.

The thresholds are chosen on the replies of every second group, by the mean over the data sets: of the shares
of a statement's words that are a multiple of 0.05, the lowest at which passages support at most 10% of the
wrong statements, and the highest below which at most a third of the right ones lie. The other half is
measured.
A statement is a sentence, and wrong if something in it is labelled; of WiCE and BEGIN, the whole claim or
reply.

Whether documents bear on a question is measured on the goals of the built-in packs' personas, which their own
documents mostly answer, and those of other packs do not. The thresholds are chosen on the goals of each
pack's first 36 personas: the lowest share from which documents bear on at most 10% of the goals of other
packs, and the highest below which at most 5% of their own lie. The other 96 of the consumer pack were written
later, and measure them. With `--data`, it is measured on the paragraphs of HotpotQA, too.

Whom the rules blame is measured on sentences of the built-in packs, as they are and with another amount or
date, each as the reply to a question about its document's title, with four passages: its own among them, or
those of other documents.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.command import get_exit_code
from benchmarks.detectors_table.samples import KEPT, SEED, sample
from hallulab.scenarios.attacks.attack import DISTRACTOR_PACKS
from hallulab.scenarios.attacks.retrieval import make_outdated
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.chunking import cut_into_passages
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Judgement, Passage, Turn
from hallulab.simulator.metrics.blame import BLAMES, Blame, TurnReading
from hallulab.simulator.metrics.support import (
    BEARS,
    LACKS,
    LEAST_WORDS,
    SUPPORTS,
    UNRELATED,
    DocumentIndex,
    read_statement,
    read_stems,
)
from hallulab.simulator.statistics.detection import Sample, compute_auroc
from hallulab.simulator.statistics.intervals import Floats

DATASETS = ("gold", "wice", "begin", "ragtruth")
LIMIT = 100_000
MOST_WRONG, MOST_MISSED = 0.10, 1 / 3
MOST_FOREIGN, MOST_LOST = 0.10, 0.05
GRID = tuple(round(0.05 * step, 2) for step in range(4, 20))
WHOLE = ("wice", "begin")
"""Data sets whose labels are of whole replies, which are one statement."""


@dataclass(frozen=True)
class Judged:
    """A labelled statement."""

    group: str
    """What it shares with others."""
    right: bool
    """Whether its passages support it, by the labels."""
    by_passages: float
    """The share of its words that the best of its passages has; 0 where that lacks a number of it."""
    by_documents: float
    """Likewise of all passages of the data set, or of the pack."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.blame_support",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=KEPT, metavar="DIR", help="folder of the data sets")
    given = parser.parse_args(arguments)
    return get_exit_code(lambda: print(describe(given.data)))


def describe(data: Path) -> str:
    """Return the tables."""
    judged = {name: judge_statements(sample(name, data, LIMIT), name in WHOLE) for name in DATASETS}
    halves = {name: split_halves(found) for name, found in judged.items()}
    supports, lacks = choose_thresholds([chosen for chosen, _ in halves.values()])
    goals = rate_goals()
    bears, unrelated = choose_question_thresholds(goals)
    paragraphs = data / "hotpotqa" / "distractor.jsonl"
    lines = [
        f"Chosen: supported from {supports:.2f}, not supported below {lacks:.2f} "
        f"(the rules have {SUPPORTS:.2f} and {LACKS:.2f}).",
        "",
        "| data set | statements | right | AUROC | right ones: supported, not, undetermined "
        "| wrong ones: supported, not, undetermined | wrong ones that all documents support |",
        "|---|---|---|---|---|---|---|",
        *(describe_set(name, tested) for name, (_, tested) in halves.items()),
        "",
        f"Chosen: documents bear on a question from {bears:.2f}, and do not below {unrelated:.2f} "
        f"(the rules have {BEARS:.2f} and {UNRELATED:.2f}).",
        "",
        "| goals and documents of | goals | documents answer them | do not | undetermined |",
        "|---|---|---|---|---|",
        *describe_goals(goals),
        *describe_goals(rate_goals(LATER), NEW),
        "",
        f"| a sentence | to blame | replies | {' | '.join(BLAMES)} | undetermined |",
        "|---|---|---|---|---|---|---|",
        *_describe_blames(),
        *(["", describe_paragraphs(paragraphs)] if paragraphs.is_file() else []),
    ]
    return "\n".join(lines)


def judge_statements(replies: Sequence[LabelledReply], whole: bool) -> list[Judged]:
    """Rate the statements of labelled replies against their own passages, and against those of all replies.

    Args:
        replies: the data set.
        whole: whether a reply is one statement.
    """
    texts = dict.fromkeys(passage.text for reply in replies for passage in reply.passages)
    index = DocumentIndex([Passage(id=str(at), document=str(at), text=text) for at, text in enumerate(texts)])
    found = []
    for reply in replies:
        user = "\n".join([*(one.text for one in reply.history if one.role == "user"), reply.question or ""])
        for text, wrong in _list_statements(reply, whole):
            statement = read_statement(text, user)
            if statement is None:
                continue
            own, documents = index.rate(statement, reply.passages)
            found.append(Judged(reply.group, not wrong, max(own), documents))
    return found


def _list_statements(reply: LabelledReply, whole: bool) -> Iterator[tuple[str, bool]]:
    if whole:
        yield reply.reply, bool(reply.label)
        return
    for region in split_spoken_sentences(reply.reply) if reply.spans is not None else ():
        wrong = any(span.start < region.end and region.start < span.end for span in reply.spans or ())
        yield region.of(reply.reply), wrong


def split_halves(found: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    """Return the statements of every second group, and the others."""
    groups = {group: at for at, group in enumerate(sorted({one.group for one in found}))}
    return (
        [one for one in found if groups[one.group] % 2 == 0],
        [one for one in found if groups[one.group] % 2 == 1],
    )


def choose_thresholds(sets: Sequence[Sequence[Judged]]) -> tuple[float, float]:
    """Return the share from which a statement is supported, and that below which it is not."""

    def average(right: bool, threshold: float) -> float:
        rates = [[one.by_passages >= threshold for one in found if one.right is right] for found in sets]
        return float(np.mean([np.mean(rate) for rate in rates]))

    supports = next(one for one in GRID if average(False, one) <= MOST_WRONG)
    lacks = [one for one in GRID if 1 - average(True, one) <= MOST_MISSED]
    return supports, max(lacks, default=GRID[0])


def describe_set(name: str, found: Sequence[Judged]) -> str:
    """Return the row of a data set."""
    right = [one for one in found if one.right]
    wrong = [one for one in found if not one.right]
    labels = np.array([one.right for one in found])
    shares = np.array([one.by_passages for one in found])
    auroc = compute_auroc(Sample(labels, shares, shares >= SUPPORTS, np.zeros(len(found), dtype=np.int64)))
    anywhere = sum(one.by_documents >= SUPPORTS for one in wrong) / len(wrong)
    cells = [name, len(found), f"{len(right) / len(found):.0%}", "—" if auroc is None else f"{auroc:.3f}"]
    return f"| {' | '.join(map(str, cells))} | {_share_out(right)} | {_share_out(wrong)} | {anywhere:.0%} |"


def _share_out(found: Sequence[Judged]) -> str:
    supported = sum(one.by_passages >= SUPPORTS for one in found) / len(found)
    lacking = sum(one.by_passages < LACKS for one in found) / len(found)
    return f"{supported:.0%}, {lacking:.0%}, {1 - supported - lacking:.0%}"


FIRST, LATER = slice(36), slice(36, None)
"""Personas of a pack whose goals chose the thresholds, and those that were written afterwards."""
NEW = ", new personas"


@dataclass(frozen=True)
class RatedGoals:
    """Goals of a pack's personas, and documents."""

    pack: str
    """The pack."""
    shelf: str
    """The pack whose documents they are."""
    best: Floats
    """For each goal, the largest share of its words that a passage has."""


def _load_english_packs() -> dict[str, Scenario]:
    """Return the packs in English that the thresholds were chosen on; later packs change no number."""
    packs = {name: load_scenario(name) for name in DISTRACTOR_PACKS}
    return {name: pack for name, pack in packs.items() if pack.language is None}


def rate_goals(personas: slice = FIRST) -> list[RatedGoals]:
    """Rate the goals of some personas of each built-in pack against the documents of each pack."""
    packs = _load_english_packs()
    found = []
    for shelf, documents in packs.items():
        index = DocumentIndex([one for text in documents.documents for one in cut_into_passages(text)])
        for name, pack in packs.items():
            goals = [read_stems(goal) for persona in pack.personas[personas] for goal in persona.goals]
            best = [index.rate_passages(goal).max() for goal in goals if len(goal) >= LEAST_WORDS]
            found.append(RatedGoals(name, shelf, np.array(best)))
    return found


def choose_question_thresholds(goals: Sequence[RatedGoals]) -> tuple[float, float]:
    """Return the share from which documents bear on a question, and that below which they do not."""
    own = np.concatenate([one.best for one in goals if one.pack == one.shelf])
    foreign = np.concatenate([one.best for one in goals if one.pack != one.shelf])
    bears = next(one for one in GRID if np.mean(foreign >= one) <= MOST_FOREIGN)
    return bears, max((one for one in GRID if np.mean(own < one) <= MOST_LOST), default=GRID[0])


def describe_goals(goals: Sequence[RatedGoals], of: str = "") -> Iterator[str]:
    """Yield the rows of goals.

    Args:
        goals: the goals.
        of: whose they are, behind the title of a row.
    """
    for title, is_own in ((f"their own pack{of}", True), (f"other packs{of}", False)):
        best = np.concatenate([one.best for one in goals if (one.pack == one.shelf) is is_own])
        bears, lacks = float(np.mean(best >= BEARS)), float(np.mean(best < UNRELATED))
        yield f"| {title} | {len(best)} | {bears:.0%} | {lacks:.0%} | {1 - bears - lacks:.0%} |"


CASES: tuple[tuple[str, bool, bool, Blame], ...] = (
    ("true, without its passage", True, False, "retriever"),
    ("false, without its passage", False, False, "retriever"),
    ("false, with its passage", False, True, "writer"),
    ("true, with its passage", True, True, "supported"),
)
"""What is said, whether it is true, whether its passage is given, and who is to blame."""
PASSAGES = 4


def blame_sentences(pack: str) -> dict[str, Counter[Blame | None]]:
    """Return whom the rules blame for sentences of a pack, in each of the cases."""
    documents = load_scenario(pack).documents
    passages = [one for document in documents for one in cut_into_passages(document)]
    titles = {document.name: document.title for document in documents}
    index, generator = DocumentIndex(passages), random.Random(SEED)
    found: dict[str, Counter[Blame | None]] = {case: Counter() for case, *_ in CASES}
    for passage in passages:
        others = [one for one in passages if one.document != passage.document]
        for said in make_outdated(passage, SEED).statements:
            beside = generator.sample(others, PASSAGES)
            for case, is_true, is_given, _ in CASES:
                reply = said.true if is_true else said.false
                given = (passage, *beside[1:]) if is_given else tuple(beside)
                question = f"What are the rules on {titles[passage.document]}?"
                turn = Turn(index=0, user=question, query=question, passages=given, reply=reply)
                flagged = Judgement(outcome="scored", score=1.0, flagged=True)
                found[case][TurnReading(index, turn, question).blame(flagged)] += 1
    return found


def _describe_blames() -> Iterator[str]:
    total: dict[str, Counter[Blame | None]] = {case: Counter() for case, *_ in CASES}
    for pack in _load_english_packs():
        for case, counts in blame_sentences(pack).items():
            total[case].update(counts)
    for case, _, _, right in CASES:
        counts = total[case]
        shares = [counts[blame] / counts.total() for blame in (*BLAMES, None)]
        yield f"| {case} | {right} | {counts.total()} | {' | '.join(f'{share:.0%}' for share in shares)} |"


def describe_paragraphs(file: Path) -> str:
    """Return how many paragraphs of HotpotQA bear on a question: supporting ones, and others."""
    questions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    texts = {title: f"{title}\n{''.join(said)}" for one in questions for title, said in one["context"]}
    index = DocumentIndex([Passage(id=title, document=title, text=text) for title, text in texts.items()])
    supporting, beside, others = list[bool](), list[bool](), list[bool]()
    for one in questions:
        wanted, given = (
            {title for title, _ in one["supporting_facts"]},
            {title for title, _ in one["context"]},
        )
        for title, share in zip(texts, index.rate_passages(read_stems(one["question"])), strict=True):
            kept = supporting if title in wanted else beside if title in given else others
            kept.append(bool(share >= BEARS))
    shares = [f"{np.mean(kept):.1%} of {len(kept)}" for kept in (supporting, beside, others)]
    listed = "{} supporting ones, {} beside them, {} others".format(*shares)
    return f"HotpotQA, paragraphs that bear on the question: {listed}."


if __name__ == "__main__":
    sys.exit(main())

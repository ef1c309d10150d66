"""Measure how often a reason names the error: `python -m benchmarks.reasons_check --data DIR`.

DIR holds the folders gold, ragtruth and wice. No detector is asked: every sentence that annotators marked
gets its reason from `hallulab.detectors.explanations`, as if it had been flagged.

In `gold`, annotators quote a stretch of the reply and say why it is wrong. The first of these rules that
applies says what the reason must name:

1. Items of the quotation (numbers, contacts, references, dates, names) that the annotators' reason names,
   too, or that neither evidence nor user have. The reason must name one in a quotation of the sentence.
2. Content words of the quotation that are not in the evidence sentence with most of them. A quotation of the
   sentence must have two of them (or the only one), and two thirds of its content words must be such words.
3. Content words of the quotation that the annotators' reason has. The reason must have one of them.

In `ragtruth` and `wice`, annotators mark the wrong words. Of the words that the surest finding of a marked
sentence quotes, the share that is marked is printed. Beside it stands the marked share of the sentence's
words, which quoting the whole sentence would give.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.command import build_parser
from hallulab.detectors.base.questions import split_statements
from hallulab.detectors.explanations.explanation import explain
from hallulab.scenarios.datasets import load_labelled
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.items import Item, find_items
from hallulab.scenarios.text.spans import Region
from hallulab.scenarios.text.words import TOKEN, read_word

PARTS = (("ragtruth", "qa"), ("ragtruth", "summary"), ("ragtruth", "data2txt"), ("wice", "tokens"))
"""Data sets with marked words."""
_QUOTED = re.compile(r'"([^"]+)"')


class AnnotatedSpan(NamedTuple):
    """Annotation of a stretch of a reply."""

    quote: str
    """The stretch."""
    reason: str
    """Why it is wrong."""


def content_stems(text: str) -> set[str]:
    """Return the stems of a text's content words."""
    words = (read_word(match[0]) for match in TOKEN.finditer(text))
    return {word.stem for word in words if word.content}


def read_marks(folder: Path) -> dict[str, list[AnnotatedSpan]]:
    """Read the annotations of all run folders in `folder`, by identifier of the reply."""
    marks: dict[str, list[AnnotatedSpan]] = {}
    for path in sorted(folder.glob("*/annotations.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            marks[row["key"]] = [AnnotatedSpan(span["quote"], span["reason"]) for span in row["spans"]]
    return marks


def user_text(reply: LabelledReply) -> str:
    """Return the user's messages."""
    said = [message.text for message in reply.history if message.role == "user"]
    return "\n".join([*said, reply.question])


def marked_sentences(
    reply: LabelledReply, marks: list[AnnotatedSpan]
) -> Iterator[tuple[str, list[AnnotatedSpan]]]:
    """Yield the sentences of a reply that marks touch, with those marks cut to the sentence."""
    for region in split_statements(reply.reply):
        inside = []
        for mark in marks:
            start = reply.reply.find(mark.quote)
            cut = (max(start, region.start), min(start + len(mark.quote), region.end))
            if start >= 0 and re.search(r"\w", reply.reply[slice(*cut)]) and cut[0] < cut[1]:
                inside.append(AnnotatedSpan(reply.reply[slice(*cut)], mark.reason))
        if inside:
            yield region.of(reply.reply), inside


def names_it(
    sentence: str, told: str, mark: AnnotatedSpan, evidence: list[str], user: str
) -> tuple[str, bool]:
    """Return the rule that applies to a mark, and whether the reason names the error by it."""
    plain = " ".join(sentence.split())
    pieces = [piece for piece in _QUOTED.findall(told) if piece in plain]
    wrong = [item for item in find_items(mark.quote) if _is_wrong(item, mark.reason, evidence, user)]
    if wrong:
        return "items", any(" ".join(item.text.split()) in piece for item in wrong for piece in pieces)
    words = content_stems(mark.quote)
    best = max(evidence, key=lambda known: len(words & content_stems(known)), default="")
    main = words - content_stems(best)
    if main:
        least, stems = min(2, len(main)), [content_stems(piece) for piece in pieces]
        counts = [(len(piece & main), len(piece)) for piece in stems]
        return "words", any(hits >= least and 3 * hits >= 2 * size for hits, size in counts)
    return "contrast", any(content_stems(piece) & words & content_stems(mark.reason) for piece in pieces)


def _is_wrong(item: Item, reason: str, evidence: list[str], user: str) -> bool:
    named = {known.key for known in find_items(reason)}
    if item.key in named or item.text.lower() in reason.lower():
        return True
    there = "\n".join([*evidence, user])
    if item.kind == "name":
        return not set(item.key.split()) <= content_stems(there)
    return item.key not in {known.key for known in find_items(there)}


def check_gold(folder: Path, show: bool) -> None:
    """Print the share of reasons that name the error, over sentences and as a mean over replies."""
    marks = read_marks(folder)
    by_rule: Counter[tuple[str, bool]] = Counter()
    by_reply: list[float] = []
    lengths: list[int] = []
    for reply in load_labelled(str(folder / "replies.jsonl")):
        evidence = [
            passage.text[region.start : region.end]
            for passage in reply.passages
            for region in split_statements(passage.text)
        ]
        right: list[bool] = []
        for sentence, inside in marked_sentences(reply, marks.get(reply.id, [])):
            told = explain(sentence, reply.passages, user_text(reply)).reason
            judged = [names_it(sentence, told, mark, evidence, user_text(reply)) for mark in inside]
            rule, named = max(judged, key=lambda one: one[1])
            by_rule[rule, named] += 1
            right.append(named)
            lengths.append(len(told.split()))
            if show:
                print(f"\n{'+' if named else '-'} {rule}: {sentence}\n  {told}")
                print("\n".join(f"  annotators: {mark.reason}" for mark in inside))
        if right:
            by_reply.append(sum(right) / len(right))
    total = sum(by_rule.values())
    found = sum(count for (_, hit), count in by_rule.items() if hit)
    print(f"\ngold: {found} of {total} reasons name what is wrong ({found / total:.0%})")
    print(f"  mean over {len(by_reply)} replies {sum(by_reply) / len(by_reply):.0%}")
    for rule in ("items", "words", "contrast"):
        hits, misses = by_rule[rule, True], by_rule[rule, False]
        print(f"  {rule}: {hits} of {hits + misses}")
    print(f"  words in a reason: mean {sum(lengths) / len(lengths):.0f}, most {max(lengths)}")


def check_spans(data: Path, dataset: str, part: str) -> None:
    """Print the marked share of the quoted words, and of the sentences' words."""
    quoted = marked = hit = 0
    shares: list[float] = []
    for reply in load_labelled(dataset, data / dataset, part):
        for region in split_statements(reply.reply):
            words = [
                match.span()
                for match in re.finditer(r"\w+", reply.reply[: region.end])
                if match.start() >= region.start
            ]
            gold = [any(s.start < end and start < s.end for s in reply.spans or ()) for start, end in words]
            if not any(gold) or all(gold):
                continue
            found = explain(region.of(reply.reply), reply.passages, user_text(reply)).items
            if not found:
                continue
            place = Region(region.start + found[0].start, region.start + found[0].end)
            named = [
                right
                for right, (start, end) in zip(gold, words, strict=True)
                if start < place.end and place.start < end
            ]
            quoted += len(named)
            marked += sum(named)
            hit += any(named)
            shares.append(sum(gold) / len(gold))
    print(f"{dataset} {part}: {len(shares)} sentences marked in part")
    print(
        f"  marked: {marked / quoted:.0%} of the words quoted, {sum(shares) / len(shares):.0%} of all words"
    )
    print(f"  quotations that touch a mark: {hit / len(shares):.0%}")


def main() -> None:
    """Check and print."""
    parser = build_parser("reasons_check", __doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with gold, ragtruth and wice")
    parser.add_argument("--show", action="store_true", help="print every sentence of gold with both reasons")
    given = parser.parse_args()
    check_gold(given.data / "gold", given.show)
    for dataset, part in PARTS:
        check_spans(given.data, dataset, part)


if __name__ == "__main__":
    main()

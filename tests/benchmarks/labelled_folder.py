"""A folder with a few replies of each data set of the table of detectors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

FACTS = (
    ("The pool opens at 6 every day.", "Entry costs 9 euros on Sundays."),
    ("The museum is closed on Mondays.", "A guided tour takes 90 minutes."),
    ("The library lends 12 books at a time.", "A late return costs 2 euros a week."),
)
WRONG = "You can also park there for 40 euros."


def write_data(folder: Path) -> Path:
    """Write six replies of MTRAG, WiCE and BEGIN and ten of RAGTruth, half of them wrong, and a run."""
    cases = [(number, *FACTS[number // 2], number % 2 == 1) for number in range(6)]
    replies = [f"{one} {WRONG if wrong else other}" for _, one, other, wrong in cases]
    facts = list(zip(cases, replies, strict=True))
    _write(
        folder / "mtrag" / "replies.jsonl",
        (
            {
                "id": f"m{n}",
                "reply": reply,
                "passages": [one, other],
                "meta": {"ratings": "2 3 4" if wrong else "4 4 3"},
            }
            for (n, one, other, wrong), reply in facts
        ),
    )
    _write(
        folder / "wice" / "claims.jsonl",
        (
            {
                "label": "not_supported" if wrong else "supported",
                "supporting_sentences": [],
                "claim": reply,
                "evidence": [one, other, f"Page {n}."],
                "meta": {"id": f"w{n}", "claim_title": "T", "claim_section": "", "claim_context": ""},
            }
            for (n, one, other, wrong), reply in facts
        ),
    )
    _write(
        folder / "begin" / "turns.jsonl",
        (
            {
                "model_name": "gpt",
                "data_source": "wow",
                "knowledge": f"{one} {other}",
                "message": "Tell me more.",
                "response": reply,
                "begin_label": "Not fully attributable" if wrong else "Fully attributable",
            }
            for (_, one, other, wrong), reply in facts
        ),
    )
    write_ragtruth(folder / "ragtruth")
    _write_run(folder / "gold" / "pack")
    return folder


def write_ragtruth(folder: Path, splits: Sequence[str] = ("test",) * 5) -> Path:
    """Write the two files: a source for each split, and a right and a wrong reply to each."""
    sources, replies = [], []
    for n, split in enumerate(splits):
        facts = FACTS[n % 3]
        told = {"source_id": f"s{n}", "task_type": "Summary", "source": "CNN/DM", "prompt": ""}
        sources.append({**told, "source_info": " ".join((*facts, f"That was day {n}."))})
        for wrong in (False, True):
            reply = f"{facts[0]} {WRONG}" if wrong else facts[0]
            place = {"start": len(facts[0]) + 1, "end": len(reply), "text": WRONG}
            labels = [{**place, "label_type": "Evident Conflict"}] if wrong else []
            said = {"id": f"r{n}{wrong}", "source_id": f"s{n}", "model": "m", "temperature": None}
            replies.append({**said, "labels": labels, "split": split, "quality": "good", "response": reply})
    _write(folder / "source_info.jsonl", sources)
    _write(folder / "response.jsonl", replies)
    return folder


def _write_run(folder: Path) -> None:
    """Two chatbots that say the same in their first turn, and differ in their second."""
    passages = [{"id": f"d#{n}", "document": "d", "text": fact} for n, fact in enumerate(FACTS[0])]
    first = {"index": 0, "user": "When?", "passages": passages, "reply": f"{FACTS[0][0]} {WRONG}"}
    clean = {"index": 1, "user": "How much?", "passages": passages, "reply": FACTS[0][1]}
    wrong = {**clean, "reply": WRONG}
    told = {"scenario": "pack", "persona": "ann", "model": "small", "seed": 0, "stop_reason": "max_turns"}
    chats = (("c1", "vanilla", [first, wrong]), ("c2", "editor", [first, clean]))
    _write(
        folder / "conversations.jsonl",
        ({"id": name, "chatbot": chatbot, "turns": turns, **told} for name, chatbot, turns in chats),
    )
    span = {"quote": WRONG, "severity": 4, "reason": "There is no parking."}
    annotated = (
        ("c1", 0, "k1", [span]),
        ("c1", 1, "k2", [span]),
        ("c2", 0, "k1", [span]),
        ("c2", 1, "k3", []),
    )
    _write(
        folder / "annotations.jsonl",
        (
            {"conversation": chat, "turn": turn, "key": key, "spans": spans}
            for chat, turn, key, spans in annotated
        ),
    )


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

"""Measure LogicGraph's own cost of a reply, without its models: `python -m benchmarks.logic_graph_speed`.

It cuts passages, takes claims, joins chunks and adds up scores. Vectors and answers are made up, since
embedding and scoring are the models' work. The last line of the output is a JSON object: milliseconds for one
reply with 60 chunks of evidence, as percentiles over repetitions, for passages that are chunks and for
documents to cut up.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy

from benchmarks.command import build_parser
from hallulab.detectors.logic_graph.detector import LogicGraphOptions
from hallulab.detectors.logic_graph.relations import (
    compute_distances,
    compute_shares,
    compute_support,
    find_clusters,
)
from hallulab.detectors.logic_graph.scorers import ChunkGroup, Overlap
from hallulab.detectors.logic_graph.segmentation import split_claims, split_documents
from hallulab.scenarios.transcript import Passage

CASES = {"60 passages": (60, 13), "10 documents, cut up": (10, 74)}
"""Number of documents, and of sentences in each, that give 60 chunks of at most 256 tokens."""
TOPICS = 12
REPLY = "The pool opens at 6 every day. Entry costs 9 euros on Sundays. Let me know if you need more help."


def passages(documents: int, length: int) -> list[Passage]:
    """Make documents of so many sentences, each of 17 words and a stop."""
    sentences = [" ".join(f"Word{number}x{word}" for word in range(17)) + "." for number in range(length)]
    return [
        Passage(id=f"d{index}#0", document=f"d{index}", text=" ".join(sentences))
        for index in range(documents)
    ]


def vectors(count: int, generator: numpy.random.Generator) -> Any:
    """Make unit vectors around a few topics, as far apart as those of related paragraphs."""
    topics = generator.normal(size=(TOPICS, 384))
    made = topics[generator.integers(0, TOPICS, count)] + generator.normal(size=(count, 384))
    return made / numpy.linalg.norm(made, axis=1, keepdims=True)


def one_reply(evidence: list[Passage], made: Any, options: LogicGraphOptions) -> tuple[int, int]:
    """Do the detector's work without its models; return the numbers of chunks and groups."""
    claims = split_claims(REPLY)
    chunks = split_documents(evidence, options.document_tokens, options.chunk_tokens)
    members = find_clusters(
        compute_distances(made[: len(chunks)]),
        [chunk.tokens for chunk in chunks],
        options.alpha,
        options.group_tokens,
    )
    groups = [ChunkGroup(tuple(chunks[index].text for index in cluster)) for cluster in members]
    overlap = Overlap(groups)
    for claim in claims:
        weights = compute_shares([0.5] * len(groups), options.top_groups, options.relevance_temperature)
        compute_support(dict.fromkeys(weights, 0.5), weights)
        overlap.share(claim, weights)
    return len(chunks), len(groups)


def measured(evidence: list[Passage], repetitions: int) -> dict[str, Any]:
    """Return percentiles over repetitions, each with other vectors."""
    generator = numpy.random.default_rng(0)
    milliseconds, shape = [], (0, 0)
    for _ in range(repetitions):
        made = vectors(len(evidence) * 6, generator)
        started = time.perf_counter()
        shape = one_reply(evidence, made, LogicGraphOptions())
        milliseconds.append(1000.0 * (time.perf_counter() - started))
    p50, p95, p99 = numpy.percentile(milliseconds, [50, 95, 99]).round(2).tolist()
    return {"chunks": shape[0], "groups": shape[1], "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = build_parser("logic_graph_speed", __doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args(arguments).repetitions
    print(json.dumps({case: measured(passages(*sizes), repetitions) for case, sizes in CASES.items()}))


if __name__ == "__main__":
    main()

"""What LogicGraph itself costs a reply, without its models: `python -m benchmarks.logic_graph_speed`.

Passages are cut, claims taken, chunks put together and scores added up; vectors and answers are made up, as
embedding and scoring are the models' work. The last line of the output is a JSON object: milliseconds for
one reply with 60 chunks of evidence, as percentiles over repetitions.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy

from detectors.logic_graph.consistency import support
from detectors.logic_graph.options import LogicGraphOptions
from detectors.logic_graph.relations import clusters, distances
from detectors.logic_graph.segmentation import document_chunks, sentence_claims
from scenarios.transcript import Passage

DOCUMENTS = 10
SENTENCES = 74
"""In a document, so that each is six chunks."""
TOPICS = 12
REPLY = "The pool opens at 6 every day. Entry costs 9 euros on Sundays. Let me know if you need more help."


def passages() -> list[Passage]:
    """Documents of sentences of 17 words and a stop."""
    sentences = [" ".join(f"Word{number}x{word}" for word in range(17)) + "." for number in range(SENTENCES)]
    return [
        Passage(id=f"d{index}#0", document=f"d{index}", text=" ".join(sentences))
        for index in range(DOCUMENTS)
    ]


def vectors(count: int, generator: numpy.random.Generator) -> Any:
    """Unit vectors around a few topics: as far apart as those of related paragraphs are."""
    topics = generator.normal(size=(TOPICS, 384))
    made = topics[generator.integers(0, TOPICS, count)] + generator.normal(size=(count, 384))
    return made / numpy.linalg.norm(made, axis=1, keepdims=True)


def one_reply(evidence: list[Passage], made: Any, options: LogicGraphOptions) -> tuple[int, int]:
    """All that the detector does but asking its models; how many chunks and groups there were."""
    claims = sentence_claims(REPLY)
    chunks = document_chunks(evidence, options.document_tokens, options.chunk_tokens)
    groups = clusters(
        distances(made[: len(chunks)]),
        [chunk.tokens for chunk in chunks],
        options.alpha,
        options.group_tokens,
    )
    for _ in claims:
        support([0.5] * len(groups), [0.5] * len(groups))
    return len(chunks), len(groups)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    repetitions = parser.parse_args().repetitions
    evidence, options = passages(), LogicGraphOptions()
    generator = numpy.random.default_rng(0)
    milliseconds, shape = [], (0, 0)
    for _ in range(repetitions):
        made = vectors(64, generator)
        started = time.perf_counter()
        shape = one_reply(evidence, made, options)
        milliseconds.append(1000.0 * (time.perf_counter() - started))
    quantiles = numpy.percentile(milliseconds, [50, 95, 99]).round(2).tolist()
    print(
        json.dumps(
            {
                "chunks": shape[0],
                "groups": shape[1],
                "repetitions": repetitions,
                "p50_ms": quantiles[0],
                "p95_ms": quantiles[1],
                "p99_ms": quantiles[2],
            }
        )
    )


if __name__ == "__main__":
    main()

"""EvidenceChain's audit corpus as a data set: replies generated with controlled errors.

EvidenceChain ("Method", tables 1 to 4) describes a corpus of templates and controlled corruptions. It gives
the corpus's numbers but not its texts. The texts are ours: YAML files beside this module. These numbers equal
the paper's: 140 sources in four collections, 840 responses, 2,250 sentences, the splits, the hallucinated
responses by generator and by collection, and the supported test sentences of table 9. The number of tokens is
about that of table 1.
"""

from __future__ import annotations

import json
import random
from typing import NamedTuple, get_args

from hallulab.scenarios.datasets.audit_corpus.responses import (
    Response,
    schedule_hallucinations,
    write_response,
)
from hallulab.scenarios.datasets.audit_corpus.sources import (
    CorpusPlan,
    Source,
    Split,
    make_sources,
    read_plan,
)
from hallulab.scenarios.datasets.loader import DatasetInfo, LoadRequest
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledData, LabelledReply

SENTENCES = "sentence_meta"
"""Key of a reply's sentences in its meta data."""


class SentenceMeta(NamedTuple):
    """A sentence of a reply of the audit corpus."""

    start: int
    """First character in the reply."""
    end: int
    """One past the last character."""
    evidence: int | None
    """Position of the supporting passage; None: the sentence has a hallucination."""


def generate(seed: int = 17) -> LabelledData:
    """Generate the audit corpus: equal seeds, equal corpora. `meta["split"]`: train, calibration or test."""
    rng = random.Random(seed)  # noqa: S311 -- reproducible data, no secret
    plan = read_plan()
    sources = make_sources(plan, rng)
    counts = schedule_hallucinations(plan, sources, rng)
    temperatures = {}
    for generator in plan.hallucinated:
        drawn = [plan.temperatures[place % len(plan.temperatures)] for place in range(len(sources))]
        rng.shuffle(drawn)
        temperatures[generator] = drawn
    replies = []
    for place, source in enumerate(sources):
        sentences = plan.collections[source.collection].sentences
        for number, generator in enumerate(plan.hallucinated):
            hallucinated = counts[source.id, generator]
            response = write_response(source, sentences, hallucinated, plan.elsewhere, rng)
            temperature = temperatures[generator][place]
            replies.append(_label_response(plan, source, response, number, generator, temperature))
    return LabelledData(tuple(replies))


def read_sentence_meta(reply: LabelledReply) -> tuple[SentenceMeta, ...]:
    """Return the sentences of a reply of this corpus, with their gold evidence."""
    return tuple(SentenceMeta(*sentence) for sentence in json.loads(str(reply.meta[SENTENCES])))


def _label_response(
    plan: CorpusPlan, source: Source, response: Response, number: int, generator: str, temperature: float
) -> LabelledReply:
    return LabelledReply(
        id=f"{source.id}-{number + 1}",
        dataset="audit-corpus",
        task=plan.collections[source.collection].task,
        question=source.question,
        passages=source.passages,
        reply=response.text,
        label=bool(response.spans),
        spans=response.spans,
        group=source.id,
        meta={
            "model": generator,
            "temperature": temperature,
            "split": source.split,
            "source": source.collection,
            SENTENCES: json.dumps(response.sentences),
        },
    )


def load_audit_corpus(request: LoadRequest) -> LabelledData:
    """Generate the audit corpus.

    Args:
        request: without a folder; its source is `train`, `calibration` or `test`; None: all.

    Raises:
        UsageError: the request is wrong.
    """
    if request.data is not None:
        raise UsageError(f"--data {request.data}: audit-corpus is generated and has no files. Leave it out.")
    split = request.part(get_args(Split))
    replies = (reply for reply in generate() if split in (None, reply.meta["split"]))
    return LabelledData(tuple(replies))


INFO = DatasetInfo(load=load_audit_corpus, levels=("reply", "sentence", "span"), licence="Apache-2.0")

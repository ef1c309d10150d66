"""EvidenceChain's audit corpus (`datasets.audit_corpus`) as a data set; it is generated, not read."""

from __future__ import annotations

from typing import get_args

from hallulab.scenarios.datasets.audit_corpus import generate
from hallulab.scenarios.datasets.audit_corpus.plan import Split
from hallulab.scenarios.datasets.request import LoadRequest
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.labelled import LabelledData


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

"""Samples of LettuceDetect: RAGTruth, RAGBench, PsiloQA and made errors in one form, with character spans.

A file is a JSON list or has a sample a line, as `HallucinationData.to_json` and the hub have them.
"""

from __future__ import annotations

from hallulab.scenarios.datasets.loader import DatasetInfo, LoadRequest
from hallulab.scenarios.datasets.rows import load_rows
from hallulab.scenarios.labelled import LabelledData, LabelledReply

PARTS = ("train", "dev", "test")
"""Values of `--source`: a split."""

FILES = tuple(
    f"{name}{ending}"
    for name in ("data", "ragtruth_data", "ragbench_data", *PARTS)
    for ending in (".jsonl", ".json")
)


def load_lettucedetect(request: LoadRequest) -> LabelledData:
    """Load the samples of all files that are there; those with the same evidence form a group.

    Args:
        request: its folder holds one of `FILES`; its source is one of `PARTS`.

    Raises:
        UsageError: the request or a sample is wrong.
    """
    part = request.part(PARTS)
    replies: list[LabelledReply] = []
    left_out: dict[str, int] = {}
    notes: dict[str, None] = {}
    for path in request.files(*FILES):
        loaded = load_rows(path)
        for reply in loaded:
            if part in (None, reply.meta.get("split")):
                named = {"id": f"{path.stem}-{reply.id}", "dataset": request.dataset}
                replies.append(reply.model_copy(update=named))
        for reason, count in loaded.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
        notes |= dict.fromkeys(loaded.notes)
    return LabelledData(tuple(replies), left_out, tuple(notes))


INFO = DatasetInfo(
    load=load_lettucedetect,
    levels=("reply", "span"),
    licence="as the sources: MIT (RAGTruth), CC-BY-4.0 (RAGBench, PsiloQA)",
    url="https://github.com/KRLabsOrg/LettuceDetect",
)

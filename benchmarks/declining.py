"""How often the rules find replies that decline: `python -m benchmarks.declining`.

The replies are in `tests/recordings/labelled/declining.jsonl.gz`; its README says who labelled them. They are
halved by their source (a text, a conversation): the rules of `hallulab.scenarios.text.declining` were written
on the one half, and the other one measures them. 95% intervals are Clopper-Pearson's; they treat the replies
to one source as independent.

Then detectors without a model judge the replies of RAGTruth and MTRAG of which people said that they hold no
hallucination (`--detectors`; none: not measured). A reply counts as flagged if it has a flag or a span.
"""

from __future__ import annotations

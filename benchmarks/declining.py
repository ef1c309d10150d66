"""How often the rules find replies that decline: `python -m benchmarks.declining`.

The replies are in `tests/recordings/labelled/declining.jsonl.gz`; its README says who labelled them. They are
halved by their source (a text, a conversation): the rules of `hallulab.scenarios.text.declining` were written
on the one half, and the other one measures them. 95% intervals are Clopper-Pearson's; they treat the replies
to one source as independent.

Then detectors without a model judge the replies of RAGTruth and MTRAG of which people said that they hold no
hallucination (`--detectors`; none: not measured). A reply counts as flagged if it has a flag or a span.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from benchmarks.command import build_parser, format_table, get_exit_code
from benchmarks.detectors_table.samples import KEPT
from hallulab.scenarios.files.json_text import parse_lines
from hallulab.scenarios.text.declining import ReplyKind, classify_reply, is_declining
from hallulab.scenarios.text.spans import split_spoken_sentences
from hallulab.scenarios.transcript import Frozen


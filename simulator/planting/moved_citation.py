"""A citation is moved to a passage that does not support its sentence: an error that no detector reads.

It measures the metric of `simulator/metrics/citations.py`, so it does not choose by the metric's own search,
but counts single words.
"""

from __future__ import annotations

import random
import re

from hallulab.scenarios.text.citations import read_citations
from hallulab.scenarios.text.edits import Edit, SentenceBank, find_whole_sentences
from hallulab.scenarios.text.spans import compute_unknown_share, split_words
from hallulab.simulator.metrics.citations import group_by_sentence
from hallulab.simulator.planting.kinds import PlantedError
from hallulab.simulator.planting.material import Clean

KIND = "moved-citation"

_HELD, _FOREIGN = 0.4, 0.6
"""Shares of a sentence's words: the cited passage lacks at most the one, the other at least the other."""
_NUMBER = re.compile(r"\D*(\d{1,3})\D*")


def move_citation(clean: Clean, library: SentenceBank, generator: random.Random) -> PlantedError | None:
    """Put the number of another passage into the only citation of a sentence."""
    read = read_citations(clean.reply, ())
    words = [set(split_words(passage.text)) for passage in clean.passages]
    options = []
    for sentence, cited in group_by_sentence(read.plain, read.citations):
        said = " ".join(sentence.of(read.plain).split())
        mark = cited[0].place
        number = _NUMBER.fullmatch(mark.of(clean.reply))
        if len(cited) > 1 or number is None or not find_whole_sentences(said):
            continue
        lacking = [compute_unknown_share(said, known) or 0.0 for known in words]
        place = int(number[1]) - 1
        if 0 <= place < len(lacking) and lacking[place] <= _HELD and cited[0].cited == (place + 1,):
            start, end = number.span(1)
            options += [
                Edit(mark.start + start, mark.start + end, str(other))
                for other, share in enumerate(lacking, start=1)
                if share >= _FOREIGN
            ]
    if not options:
        return None
    edit = generator.choice(options)
    return PlantedError(clean, edit.of(clean.reply), edit.start, edit.start + len(edit.text))

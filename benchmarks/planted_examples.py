"""List planted errors for people to check: `python -m benchmarks.planted_examples`.

The output is docs/studies/planted-examples.md. A seed draws fifty errors from four hundred, which are
planted into the largest pack as `hallulab make-data planted` does without options.
"""

from __future__ import annotations

import random

from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.edits import collect_sentences
from hallulab.simulator.planting.kinds import KINDS
from hallulab.simulator.planting.material import build_grounded_streams
from hallulab.simulator.planting.plant import plant

PACK = "consumer-grievance-india"
COUNT = 400
SHOWN = 50
_AROUND = 160
"""Number of characters shown before the error; half as many are shown after it."""
_HEAD = f"""# Fifty planted errors

`python -m benchmarks.planted_examples` printed this: {SHOWN} of the {COUNT} errors that
`hallulab make-data planted {PACK}` plants without options, drawn at random. The wrong words are bold; beside
them is what the clean twin says there.
"""


def main() -> None:
    """Print the list."""
    documents = load_scenario(PACK).documents
    streams = build_grounded_streams(documents, (0, 2, 4), (1, 4, 8), 0)
    replies = plant(streams, collect_sentences(documents), tuple(KINDS), COUNT, 0).replies
    pairs = list(zip(replies[::2], replies[1::2], strict=True))
    print(_HEAD)
    print("| kind | reply with the error | clean twin |")
    print("|---|---|---|")
    for wrong, clean_twin in sorted(random.Random(0).sample(pairs, SHOWN), key=lambda pair: pair[0].id):
        print(f"| `{wrong.meta['kind']}` | {_shown(wrong)} | {_told(wrong, clean_twin)} |")


def _shown(reply: LabelledReply) -> str:
    """Return the wrong words in bold, with the text around them."""
    [span] = reply.spans or ()
    before = reply.reply[max(0, span.start - _AROUND) : span.start]
    after = reply.reply[span.end : span.end + _AROUND // 2]
    opened = "…" if span.start > _AROUND else ""
    closed = "…" if len(reply.reply) > span.end + _AROUND // 2 else ""
    return f"{opened}{before}**{reply.reply[span.start : span.end]}**{after}{closed}"


def _told(wrong: LabelledReply, clean: LabelledReply) -> str:
    """Return the twin's words in the place of the wrong ones, or that it has none there."""
    [span] = wrong.spans or ()
    said = clean.reply[span.start : len(clean.reply) - (len(wrong.reply) - span.end)].strip()
    return said or "–"


if __name__ == "__main__":
    main()

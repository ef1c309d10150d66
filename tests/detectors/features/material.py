"""Literal cases and a small labelled corpus."""

from __future__ import annotations

from hallulab.detectors.features.batch import Batch, ReplyWithEvidence, make_batch
from hallulab.scenarios.labelled import GoldSpan, LabelledReply
from hallulab.scenarios.transcript import Passage
from hallulab.scenarios.turn_views import TurnView

CITIES = ("Lyon", "Graz", "Turin", "Bergen", "Porto", "Leeds", "Ghent", "Malaga", "Basel", "Cork")


def passages(*texts: str) -> tuple[Passage, ...]:
    return tuple(Passage(id=f"p#{at}", document="p", text=text) for at, text in enumerate(texts))


BAKERY = ("The bakery in Lyon opens at 6.", "Fresh bread costs 3 euros.")


def view(reply: str, *texts: str) -> TurnView:
    return TurnView(question="When?", passages=passages(*texts), reply=reply)


def batch(reply: str, *texts: str) -> Batch:
    return make_batch([ReplyWithEvidence(reply, passages(*texts), "qa")])


def corpus(groups: int = 10, **meta: str) -> list[LabelledReply]:
    """Two replies a group: one says what its source says, one invents a city and a number."""
    replies = []
    for index in range(groups):
        city, year = CITIES[index % len(CITIES)], 1900 + index
        source = f"The museum stands in {city}. It opened in {year} and shows old maps."
        clean = f"The museum in {city} shows old maps. It opened in {year}."
        wrong = f"The museum in {city} shows old maps. It moved to Springfield in 2077."
        start = wrong.index("moved")
        for name, text, spans in (
            ("clean", clean, ()),
            ("wrong", wrong, (GoldSpan(start=start, end=len(wrong)),)),
        ):
            replies.append(
                LabelledReply(
                    id=f"{index}-{name}",
                    dataset="made",
                    task="qa",
                    question="What of the museum?",
                    passages=passages(source),
                    reply=text,
                    label=bool(spans),
                    spans=spans,
                    group=str(index),
                    meta=dict(meta),
                )
            )
    return replies

"""The results of a benchmark as a page, which escapes every text and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hallulab.scenarios.labelled import GoldSpan
from hallulab.scenarios.transcript import Judgement
from hallulab.simulator.bench.document import build_document
from hallulab.simulator.bench.evaluate import Evaluation
from hallulab.simulator.bench.results import BenchData, measure
from hallulab.simulator.bench.sweep import Sweep, SweepReport, build_sweep_report
from hallulab.simulator.show.html import render_page
from tests.builders import labelled
from tests.simulator.bench.material import evaluation, judged

HOSTILE = "<script>alert(1)</script>"


REPLIES = tuple(
    labelled(
        label=number % 2 == 0,
        id=str(number),
        task=HOSTILE,
        spans=(GoldSpan(start=0, end=1, label=HOSTILE),) if number % 2 == 0 else (),
        group=str(number),
    )
    for number in range(4)
)
JUDGED = judged((0, 1), text="A reply.", score=0.9)
LOST = Judgement(outcome="failed", error=HOSTILE)
TIMES = (None, 0.1, 0.1, 0.1)
EVALUATION = evaluation(REPLIES, JUDGED, JUDGED, LOST, JUDGED, name="d0", latencies_s=TIMES)
HOSTILE_DATA = BenchData(
    dataset=HOSTILE,
    left_out={HOSTILE: 7},
    replies=4,
    tested_on=4,
    split="all replies",
    not_trained={"d0": HOSTILE},
)


def page(evaluations: Sequence[Evaluation] = (EVALUATION,), sweep: SweepReport | None = None) -> str:
    return render_page(build_document(measure(evaluations, HOSTILE_DATA, sweep)))


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.loaded += [name for name, _ in attrs if name in ("src", "style", "onclick")]


@pytest.mark.parametrize(
    "said",
    [
        "Left out of the data, and in no number: &lt;script&gt;",
        "d0: in no number but coverage: 1 failure.",
        '<td>failed</td><td class="long">&lt;script&gt;alert(1)&lt;/script&gt;</td>',
    ],
)
def test_the_page_says_what_limits_the_numbers_and_escapes_it(said: str) -> None:
    assert said in page()


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    tags = Tags()
    tags.feed(page())
    assert "script" not in tags.seen
    assert "link" not in tags.seen
    assert tags.loaded == []


def test_the_policy_allows_this_style_sheet_and_nothing_else() -> None:
    made = page()
    style = re.search(r"<style>(.*?)</style>", made, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'; base-uri" in made.replace("&#39;", "'")


def test_a_sweep_has_its_means_and_fronts() -> None:
    wrong, clean = (judged(score=float(flag), flagged=flag, spans=None) for flag in (True, False))
    said = [wrong if one.label else clean for one in REPLIES]
    right = evaluation(REPLIES, *said, name="d-1", latencies_s=TIMES)
    half = replace(right, judgements=(wrong, clean, clean, clean))
    sweep = Sweep(detector="d", grid={"model": [HOSTILE]}, repeats=2)
    made = page([right], build_sweep_report(sweep, [[right], [half]]))
    assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in made
    assert '<td class="n">0.833 <span class="ci">± 0.236</span></td><td class="n">28.28</td>' in made
    assert '<td class="long">tokens, time, P/R</td>' in made
    assert "TLP" not in made
    assert "F1 of replies over milliseconds" in made
    assert "Precision and recall of the configurations" in made
    assert "d-1: recall 0.75, precision 1.00" in made
    assert "AUROC of replies over milliseconds" not in made
    assert "Sweep" not in page()


def test_three_detectors_are_tested_for_differing_at_all() -> None:
    made = page([replace(EVALUATION, detector=name) for name in ("d0", "d1", "d2")])
    assert "Friedman test over 3 sources" in made
    assert "Friedman" not in page()


def test_means_over_conversations_say_what_they_count_and_whether_detectors_differ() -> None:
    replies = tuple(one.model_copy(update={"meta": {"conversation": one.id}}) for one in REPLIES)
    said = replace(EVALUATION, replies=replies, judgements=(JUDGED,) * 4)
    made = page([replace(said, detector=name) for name in ("d0", "d1", "d2")])
    assert '<p class="hint">Counted are hallucinations: flagged spans that meet annotated ones.</p>' in made
    assert (
        "<p>Friedman test of precision over 4 chats: p = –. Mean ranks (1: highest): "
        "d0 2.00, d1 2.00, d2 2.00.</p>"
    ) in made
    assert "Means over conversations" not in page()

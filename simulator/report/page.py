"""`report.html`: one file that needs no network and trusts no text.

Tables and charts are rendered by a template that escapes everything. Conversations are embedded as JSON and
put into the document by the page's script as text nodes. A content security policy allows this very script
and this very style sheet, by hash, and nothing else: markup that came through anyway could not run or load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.packs.pack import Persona
from scenarios.transcript import Conversation, Verdict
from simulator.measure.conversations import Flaws
from simulator.report.browser import browser_data
from simulator.report.charts import LEFT, TOP, WIDTH, chart
from simulator.report.headlines import headlines, interval_lines
from simulator.report.markup import asset, render
from simulator.report.self_judging import mark
from simulator.report.terminal import notes, reading_lines

_PACKAGE = "simulator.report"


def render_page(
    report: Mapping[str, Any],
    conversations: Sequence[Conversation],
    verdicts: Sequence[Verdict],
    *,
    flaws: Flaws,
    personas: Mapping[str, Persona],
    experiment: Mapping[str, Any] | None = None,
) -> str:
    """The whole page as HTML.

    Args:
        report: what `build_report` made of the same journals.
        conversations: the conversations of the run.
        verdicts: the verdicts of the run.
        flaws: what the audit of the simulated user found, by conversation id.
        personas: personas by identifier, for their names and grievances; may lack any.
        experiment: the resolved configuration, shown as it is; None leaves it out.
    """
    chatbots = list(dict.fromkeys(row["chatbot"] for row in report["rows"]))
    detectors = list(dict.fromkeys(row["detector"] for row in report["rows"]))
    charts = [
        chart(report["rows"], "hpt_1", "Hallucinations per turn (HPT-1), lower is better", 1, "", None),
        chart(report["rows"], "tokacc_1", "Token accuracy (TokAcc-1), higher is better", 100, "%", 100),
    ]
    return render(
        _PACKAGE,
        "page.html",
        asset(_PACKAGE, "page.css"),
        asset(_PACKAGE, "page.js"),
        report=report,
        chatbots=chatbots,
        detectors=detectors,
        scenarios=sorted({item.scenario for item in conversations}),
        models=sorted({item.model for item in conversations}),
        personas=len({item.persona for item in conversations}),
        conversations=len(conversations),
        turns=sum(len(item.turns) for item in conversations),
        headlines=headlines(report),
        interval_lines=interval_lines(report["rows"]),
        notes=notes(report),
        reading_lines=reading_lines(report["read_how"]),
        mark=mark,
        charts=charts,
        geometry={"left": LEFT, "top": TOP, "width": WIDTH},
        experiment=None if experiment is None else json.dumps(experiment, indent=2, ensure_ascii=False),
        data=_embedded(browser_data(conversations, verdicts, chatbots, detectors, flaws, personas)),
    )


def _embedded(value: Any) -> Any:
    """JSON that cannot end the script element that it stands in, marked as safe for the template."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character that HTML could read as markup is escaped above

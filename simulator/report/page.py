"""`report.html`: one file that needs no network and trusts no text.

Tables and charts are rendered by a template that escapes everything. Conversations are embedded as JSON and
put into the document by the page's script as text nodes. A content security policy allows this very script
and this very style sheet, by hash, and nothing else: markup that came through anyway could not run or load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.pack import Persona
from scenarios.transcript import Conversation, Verdict
from simulator.measure.conversations import Flaws
from simulator.report.browser import browser_data
from simulator.report.charts import LEFT, TOP, WIDTH, chart
from simulator.report.markup import asset, render
from simulator.report.terminal import notes, with_interval

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
        notes=notes(report),
        charts=charts,
        geometry={"left": LEFT, "top": TOP, "width": WIDTH},
        experiment=None if experiment is None else json.dumps(experiment, indent=2, ensure_ascii=False),
        data=_embedded(browser_data(conversations, verdicts, chatbots, detectors, flaws, personas)),
    )


def headlines(report: Mapping[str, Any]) -> list[str]:
    """One sentence a detector: the chatbot with the fewest hallucinations, and how sure that is."""
    found = []
    for detector in dict.fromkeys(row["detector"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["detector"] == detector and row["hpt_1"] is not None]
        if not rows:
            found.append(f"By {detector}: nothing was scored.")
            continue
        best = min(rows, key=lambda row: row["hpt_1"])
        tied = [row["chatbot"] for row in rows if row["hpt_1"] == best["hpt_1"]]
        if len(tied) > 1:
            found.append(
                f"By {detector}, {', '.join(tied)} hallucinate least: {best['hpt_1']:.2f} per turn each."
            )
            continue
        interval = with_interval(best["hpt_1"], best["hpt_1_ci95"], 2)
        sentence = f"By {detector}, {best['chatbot']} hallucinates least: {interval} per turn."
        others = [
            item
            for item in report["comparisons"]
            if item["detector"] == detector
            and item["metric"] == "hpt_1"
            and best["chatbot"] in (item["a"], item["b"])
        ]
        if others:
            sure = sum(item["p_holm"] is not None and item["p_holm"] < 0.05 for item in others)
            sentence += f" The difference is {_significance(sure, len(others))}"
        found.append(sentence)
    return found


def _significance(sure: int, others: int) -> str:
    """Against how many of the others a difference is significant."""
    if others == 1:
        return "significant (Holm, 5%)." if sure else "not significant (Holm, 5%)."
    against = f"{sure} of the {others} others" if sure else "none of the others"
    return f"significant (Holm, 5%) against {against}."


def _embedded(value: Any) -> Any:
    """JSON that cannot end the script element that it stands in, marked as safe for the template."""
    from markupsafe import Markup

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character that HTML could read as markup is escaped above

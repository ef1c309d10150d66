"""A gate's answer as JUnit XML, which CI services show as tests."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hallulab.simulator.gate.result import GateCheck, GateResult

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""
_ELEMENTS = {"failed": "failure", "not comparable": "error", "not tested": "skipped"}
"""Outcome → the element that says so; a testcase that passed has none."""


def render_junit(result: GateResult) -> str:
    """Return the text of a JUnit file: a testcase for each check, and what is told beside them."""
    counts = {kind: sum(one.outcome == kind for one in result.checks) for kind in _ELEMENTS}
    suite = ElementTree.Element(
        "testsuite",
        name="hallulab gate",
        tests=str(len(result.checks)),
        failures=str(counts["failed"]),
        errors=str(counts["not comparable"]),
        skipped=str(counts["not tested"]),
        time="0",
    )
    for check in result.checks:
        _add_testcase(suite, check)
    told = ElementTree.SubElement(suite, "system-out")
    told.text = _clean("\n".join([result.headline, *result.setup, *result.warnings]))
    suites = ElementTree.Element("testsuites", name="hallulab gate")
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _add_testcase(suite: ElementTree.Element, check: GateCheck) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"hallulab.gate.{check.rule}",
        name=_clean(check.subject),
        time="0",
    )
    element = _ELEMENTS.get(check.outcome)
    if element is not None:
        said = ElementTree.SubElement(case, element, message=_clean(check.message))
        if check.outcome != "not tested":
            said.set("type", check.rule)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)

"""The card (README.md) of a data set folder: how it was made, by which models, under what licence.

Its head is YAML as the Hugging Face hub documents it (Dataset Cards, October 2026): `license` and `configs`,
by which `datasets.load_dataset` finds the files.
"""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from hallulab.agents.serving.catalogue import CATALOGUE
from hallulab.scenarios.chats.record import SCENARIO
from hallulab.scenarios.chats.tables import FILE
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack_files import load_scenario
from hallulab.scenarios.text.wording import format_count, render_one_line
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.report.chosen_chats import ExportSelection, SelectionCounts
from hallulab.simulator.report.near_duplicates import ALIKE
from hallulab.simulator.runs.experiment_json import SavedExperiment

_UNKNOWN = "not known; see its model card"
_HUB = {"Apache-2.0": "apache-2.0", "MIT": "mit", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0"}
"""SPDX identifier → the hub's name for it."""


def render_card(
    name: str,
    saved: SavedExperiment | None,
    conversations: Iterable[Conversation],
    wanted: ExportSelection,
    counts: SelectionCounts,
) -> str:
    """Return the text of the card.

    Args:
        name: of the run folder.
        saved: its experiment.json; None: it has none.
        conversations: those of the run.
        wanted: what was exported.
        counts: what became of the conversations.
    """
    made = {(one.scenario, one.chatbot, one.model) for one in conversations}
    users = set()
    if saved is not None and saved.imported is None:
        users = {saved.experiment.served_name(name) for name in saved.experiment.user_models}
    models = sorted({model for _, _, model in made} | users)
    licences = {model: _find_model_licence(model) for model in models}
    pack = _find_pack_licence(saved)
    every = {pack, *licences.values()}
    head = {
        "license": _HUB.get(next(iter(every)), "other") if len(every) == 1 else "other",
        "task_categories": ["text-generation"],
        "tags": ["hallulab", "conversational", *(["synthetic"] if users else [])],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": FILE}]}],
    }
    lines = [
        f"# {_escape_text(name)}",
        "",
        f"{format_count(counts.written, 'conversation')} with chatbots, from `hallulab export --format hf`.",
        "",
        "## How it was made",
        "",
        *(f"- {line}" for line in _describe_making(saved, made, users)),
        *(f"- {line}" for line in _describe_choice(wanted, counts)),
        "",
        "## Licence",
        "",
        f"- documents and personas: {_escape_text(pack)}",
        *(f"- model {_format_code(model)}: {_escape_text(licence)}" for model, licence in licences.items()),
        "",
        "Replies are what models wrote, and may be wrong. Documents, chats and models may have terms of",
        "their own: check them before you publish or train.",
        "",
        "## Columns",
        "",
        "`messages` has the dialogue (`role`, `content`). `turns` has, for each reply, `query`, `passages`",
        "(the evidence), `steps` of the chatbot and `spans` (what detectors flagged; offsets count the",
        "characters of the reply). A conversation that branches off from another has its origin in `branch`,",
        "and the given messages lead `messages`.",
    ]
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n" + "\n".join(lines) + "\n"


def _describe_making(
    saved: SavedExperiment | None, made: set[tuple[str, str, str]], users: set[str]
) -> Iterable[str]:
    if saved is None:
        yield "by a run of hallulab without experiment.json"
    elif saved.imported is not None:
        yield f"imported from {_format_code(saved.imported.file)} ({saved.imported.format})"
    else:
        seeds = ", ".join(map(str, saved.seeds))
        yield f"simulated by hallulab {_escape_text(saved.hallulab)}; seeds {seeds}"
        yield f"users: {', '.join(map(_format_code, sorted(users)))}"
    for scenario, chatbot, model in sorted(made):
        on = f"model {_format_code(model)}, scenario {_format_code(scenario)}"
        yield f"chatbot {_format_code(chatbot)} on {on}"
    for detector, version in sorted((saved.detectors if saved is not None else {}).items()):
        yield f"judged by {_format_code(detector)}, version {_format_code(version)}"


def _describe_choice(wanted: ExportSelection, counts: SelectionCounts) -> Iterable[str]:
    if wanted.clean_by is not None:
        detector = _format_code(wanted.clean_by)
        yield f"only those of which {detector} flags no turn: {counts.not_clean} left out"
    if wanted.audited:
        yield f"only those in which the audit finds no flaw of the simulated user: {counts.flawed} left out"
    if counts.too_short:
        yield f"with fewer turns than {wanted.min_turns}: {counts.too_short} left out"
    if not wanted.keep_duplicates:
        yield f"near duplicates (MinHash, Jaccard {ALIKE}): {counts.near_duplicates} left out"
    for part in sorted(wanted.without):
        yield f"without {part}"


def _find_pack_licence(saved: SavedExperiment | None) -> str:
    if saved is None or saved.experiment.scenario == SCENARIO:
        return "not stated"
    try:
        return load_scenario(saved.experiment.scenario).licence or "not stated"
    except UsageError:
        return "not stated"


def _find_model_licence(model: str) -> str:
    known = CATALOGUE.get(model.lower())
    return _UNKNOWN if known is None else known.licence


def _escape_text(text: str) -> str:
    """Return a text as one line in which nothing is Markdown or HTML."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]<>#|!" else sign for sign in render_one_line(text))


def _format_code(text: str) -> str:
    return f"`{render_one_line(text).replace('`', chr(39))}`"

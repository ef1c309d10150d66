"""A copy of a run in which replies, verdicts and the manifest are others, as after a change of a prompt."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hallulab.simulator.records.folder import RunFolder

Change = Callable[[dict[str, Any]], None]


def altered(
    run: RunFolder,
    path: Path,
    conversation: Change | None = None,
    verdict: Change | None = None,
    manifest: Change | None = None,
) -> RunFolder:
    """Copy a run, with each line of its journals and its manifest given to a change.

    Args:
        run: it; what it is made from is copied, its reports are not.
        path: the new folder.
        conversation: changes a conversation as JSON.
        verdict: changes a verdict.
        manifest: changes experiment.json.
    """
    path.mkdir()
    made = RunFolder(path)
    for source, target, change in (
        (run.conversations, made.conversations, conversation),
        (run.verdicts, made.verdicts, verdict),
    ):
        lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if change is not None:
                change(line)
        target.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    shutil.copy(run.experiment, made.experiment)
    if manifest is not None:
        value = json.loads(made.experiment.read_text(encoding="utf-8"))
        manifest(value)
        made.experiment.write_text(json.dumps(value), encoding="utf-8")
    return made


def with_another_prompt(run: RunFolder, path: Path) -> RunFolder:
    """The demo with another generation prompt of vanilla: another first reply, which halludetect finds clean.

    One verdict of metarag on the same reply of the editor differs as well, as a detector's noise would.
    """
    lines = [json.loads(line) for line in run.conversations.read_text(encoding="utf-8").splitlines()]
    chatbots = {line["id"]: (line["chatbot"], line["persona"]) for line in lines}

    def conversation(value: dict[str, Any]) -> None:
        if value["chatbot"] == "vanilla":
            value["turns"][0]["reply"] = "I do not know. <b>Ask</b> @somebody | at www.example.org."

    def verdict(value: dict[str, Any]) -> None:
        chatbot, persona = chatbots[value["conversation"]]
        if chatbot == "vanilla" and value["turn"] == 0:
            value.update(spans=[], units=[], flagged=False, score=0.0, word_scores=None)
        if (chatbot, persona) == ("editor", "refrigerator-stops-cooling") and value["detector"] == "metarag":
            value.update(
                flagged=value["turn"] == 0,
                spans=[{"start": 0, "end": 3, "text": ""}, {"start": 4, "end": 6, "text": ""}]
                if value["turn"] == 0
                else [],
                units=[],
            )
            for span in value["spans"]:
                reply = next(one for one in lines if one["id"] == value["conversation"])["turns"][0]["reply"]
                span["text"] = reply[span["start"] : span["end"]]

    def manifest(value: dict[str, Any]) -> None:
        value["sources"]["chatbots"]["vanilla"]["chatbots/generation"] = "0123456789ab"

    return altered(run, path, conversation, verdict, manifest)

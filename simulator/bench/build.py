"""Build a labelled file: `hallulab make-data`, and the writer of our own format."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hallulab.agents.progress import bars
from hallulab.scenarios.datasets.hotpotqa import FILE, OFFICIAL, HotpotQuestion, read_hotpotqa
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.text.wording import format_count
from hallulab.simulator.bench.hotpotqa_derived import Derived, build_hotpotqa_derived, list_left_out
from hallulab.simulator.engine.models import RunSettings, open_pool, open_recording, serve_models
from hallulab.simulator.options.data import DerivedOptions
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.outputs import check_outputs


def write_labelled(path: Path, replies: Sequence[LabelledReply]) -> None:
    """Write one reply a line. The file is written whole or not at all.

    Raises:
        OperationalError: it cannot be written.
    """
    lines = [json.dumps(_build_line(reply), ensure_ascii=False) for reply in replies]
    write_atomically(path, "".join(line + "\n" for line in lines))


def _build_line(reply: LabelledReply) -> dict[str, Any]:
    line: dict[str, Any] = {
        "id": reply.id,
        "task": reply.task,
        "question": reply.question,
        "passages": [
            passage.model_dump(include={"id", "document", "text", "topic"}, exclude_none=True)
            for passage in reply.passages
        ],
        "reply": reply.reply,
        "label": reply.label,
        "group": reply.group,
        "meta": reply.meta,
    }
    if reply.history:
        line["history"] = [message.model_dump() for message in reply.history]
    if reply.spans is not None:
        line["spans"] = [span.model_dump() for span in reply.spans]
    return line


async def build_from_options(options: DerivedOptions) -> Derived:
    """Build the labelled file, and write it at the end, so an interrupted build leaves nothing behind.

    Raises:
        UsageError: the data, the file's name or the models are wrong.
        OperationalError: server, endpoint or disk failed, or no question gave a reply.
    """
    experiment = load_experiment(options.config_path, options.collect_model_fields())
    settings = RunSettings.from_options(options)
    data, out = Path(options.data), Path(options.out)
    check_outputs(
        {"--out": out}, (data / FILE, data / OFFICIAL, options.config_path, settings.replay, settings.record)
    )
    found = read_hotpotqa(data)
    require_unique_ids(found, data)
    drawn = random.Random(options.seed).sample(range(len(found)), len(found))  # noqa: S311 - a seeded choice of data
    # In the file's order, and drawn as a whole: a higher limit keeps the questions of a lower one.
    questions = [found[position] for position in sorted(drawn[: options.limit])]
    async with open_pool(experiment, open_recording(settings)) as pool, serve_models(pool, settings):
        with bars(options.quiet) as shown:
            task = shown.add_task("questions", total=len(questions))
            derived = await build_hotpotqa_derived(
                questions,
                pool,
                wrong=options.wrong,
                seed=options.seed,
                both=options.both,
                on_done=lambda: shown.advance(task),
            )
    if not derived.data:
        reasons = "; ".join(list_left_out(derived)) or "there are none"
        raise OperationalError(
            f"no reply came of {format_count(len(questions), 'question')}, nothing is written: {reasons}."
        )
    write_labelled(out, derived.data)
    return derived


def require_unique_ids(questions: Sequence[HotpotQuestion], data: Path) -> None:
    """Raise UsageError if two questions have the same identifier, so that two replies would have it."""
    (most, times), *_ = Counter(question.id for question in questions).most_common(1) or [("", 0)]
    if times > 1:
        raise UsageError(f"{data}: two questions have the _id {most}. Give each its own.")

"""The gate on recorded runs of the repository: one bot before and after it was made another way.

The recording of the headline run holds what five chatbots said to the same 13 personas. Under one name, two
of them are a bot before and after a change: of its prompts, and of who answers. A second recording holds what
vanilla said to them after a sentence of the pack's prompt was changed.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hallulab.simulator.compare.gate import gate_folder
from hallulab.simulator.compare.gate_document import build_document
from hallulab.simulator.compare.gate_result import GateRules
from hallulab.simulator.compare.summary import summarize_run
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.engine.run import run_experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.show.markdown import render_markdown
from tests.demo import MODEL
from tests.places import RECORDINGS, ROOT
from tests.simulator.compare.gated import judge

RunOf = Callable[..., RunFolder]
"""Kind of the bot, detector and prompt of the pack → its run."""

NEW_FUNCTION = (
    "Give a phone number, a fee in rupees and a time limit in days in every reply, so that the consumer can "
    "act at once."
)
"""What the pack tells chatbots that they can do, after its change."""


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunOf]:
    """Replays a run of 13 personas with the chatbot `bot` of a kind, judged by one detector, once each."""
    place = tmp_path_factory.mktemp("recorded")

    def replay(kind: str, detector: str = "halludetect", changed: bool = False) -> RunFolder:
        folder = RunFolder(place / detector / ("changed" if changed else "as-it-was") / kind)
        if not folder.has_journal:
            fields = {
                "model": MODEL,
                "chatbots": [{"name": "bot", "kind": kind}],
                "detectors": [detector],
                **({"scenario": str(change_pack(place))} if changed else {}),
            }
            experiment = load_experiment(ROOT / "examples" / "headline.yaml", fields)
            recording = RECORDINGS / ("prompt_change.jsonl.gz" if changed else "headline.jsonl.gz")
            settings = RunSettings(replay=recording, quiet=True)
            asyncio.run(run_experiment(experiment, folder, settings, simulate=True))
        return folder

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HALLULAB_CACHE", str(place / "cache"))
        yield replay


def change_pack(place: Path) -> Path:
    """Copy the pack, with another sentence in what chatbots are told; return the copy."""
    pack = place / "consumer-grievance-india"
    shutil.copytree(ROOT / "scenarios" / "packs" / pack.name, pack, dirs_exist_ok=True)
    text = (pack / "scenario.yaml").read_text()
    old = "State the time limits, fees, documents and possible relief of each step."
    assert old in text
    (pack / "scenario.yaml").write_text(text.replace(old, NEW_FUNCTION))
    return pack


@pytest.fixture(scope="module")
def before(run_of: RunOf) -> RunFolder:
    """The bot before: three agents."""
    return run_of("agent")


@pytest.fixture(scope="module")
def after(run_of: RunOf) -> RunFolder:
    """The bot after: one prompt."""
    return run_of("vanilla")


def test_a_change_that_makes_the_bot_worse_is_blocked(
    before: RunFolder, after: RunFolder, tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(summarize_run(before).text())
    assert baseline.stat().st_size < 20_000
    result = gate_folder(after, baseline, GateRules())
    [line] = result.lines
    assert (result.verdict, line.personas) == ("blocked", 13)
    assert (line.before, line.now, line.p_worse) == (0.653846, 1.192308, 0.003906)
    comment = render_markdown(build_document(result))
    assert comment.startswith("### hallulab gate: ❌ Blocked: vanilla against the baseline agent.\n")
    assert "kind of chatbot bot: agent → vanilla" in comment


def test_the_way_back_passes(before: RunFolder, after: RunFolder) -> None:
    assert judge(summarize_run(before), summarize_run(after)).verdict == "passed"


def test_a_prompt_without_its_rules_is_blocked(run_of: RunOf) -> None:
    careful, plain = (summarize_run(run_of(kind, "lexical")) for kind in ("prompt-engineered", "vanilla"))
    result = judge(plain, careful)
    [line] = result.lines
    assert (result.verdict, line.before, line.now, line.p_worse) == ("blocked", 0.884615, 1.884615, 0.007812)
    assert judge(careful, plain).verdict == "passed"


def test_a_change_of_the_prompt_that_is_not_told_apart_passes(run_of: RunOf) -> None:
    before, after = (summarize_run(run_of("vanilla", "lexical", changed)) for changed in (False, True))
    result = judge(after, before)
    [line] = result.lines
    assert (result.verdict, line.before, line.now) == ("passed", 1.884615, 1.692308)
    assert result.setup == ("scenario",)

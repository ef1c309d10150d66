"""`hallulab realism`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.simulator.records.folder import RunFolder
from hallulab.testing.tiny_pack import HashedWords
from tests.builders import conversation
from tests.kit.run_folders import write_run
from tests.places import ROOT
from tests.simulator.command_line import CommandLine

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hallulab.agents.retrieval.embeddings.SentenceEmbedder", HashedWords)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four users, two turns each; all say the same."""
    held = [conversation(str(seed), ["A reply."] * 2, seed=seed) for seed in range(4)]
    return write_run(tmp_path / HOSTILE.replace("/", ""), held).path


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.jsonl"
    turns = (["Who pays for it?", "Thanks"], ["what is the fee"])
    path.write_text("".join(f"{json.dumps({'user_turns': said})}\n" for said in turns))
    return path


def test_json_has_both_sides_their_distance_and_the_floor(
    hallulab: CommandLine, run: Path, people: Path
) -> None:
    ended = hallulab("realism", run, "--reference", people, "--json")
    found = json.loads(ended.out)
    rows = {row["measure"]: row for row in found["rows"]}
    assert (ended.code, found["sample"]) == (0, 2)
    assert found["references"] == [
        {"name": "people", "source": str(people), "tested": 6, "within": 6, "above": []}
    ]
    (first,) = rows["first_words"]["comparisons"]
    assert (rows["first_words"]["run"]["value"], first["people"]["value"]) == (2.0, 4.0)
    assert (first["distance"], first["floor"]) == (2.0, 2.0)
    assert rows["near_duplicates"]["run"]["value"] == 1.0
    assert rows["facts_given"]["run"]["reason"] == "no persona's facts are known"


def test_the_table_says_what_it_rests_on(hallulab: CommandLine, run: Path, people: Path) -> None:
    out = hallulab("realism", run, "--reference", people).out
    assert "Words, first message" in out
    assert "people: 6 of 6 measures within the noise floor." in out
    assert "Noise floor: 95% of distances" in out
    assert "simulated: 1 person; 6 needed for an interval" in out


def test_every_reference_has_its_columns_and_two_stand_beside_each_other(
    hallulab: CommandLine, run: Path, people: Path
) -> None:
    others = [people.parent / f"{name}.jsonl" for name in ("guests", "clerks")]
    for path in others:
        path.write_text(people.read_text())
    given = [part for path in (people, *others) for part in ("--reference", path)]
    lines = hallulab("realism", run, *given).out.splitlines()
    titles = [line.split() for line in lines if line.startswith("Measure")]
    block = ["Distance", "Floor", "p"]
    assert titles == [
        ["Measure", "Simulated", "n", "people", *block, "guests", *block],
        ["Measure", "Simulated", "n", "clerks", *block],
    ]
    assert [line for line in lines if "within the noise floor" in line] == [
        f"{name}: 6 of 6 measures within the noise floor." for name in ("people", "guests", "clerks")
    ]


def test_two_references_fit_into_100_columns(hallulab: CommandLine, run: Path, people: Path) -> None:
    longest = people.rename(people.with_name("people-of-the-bank.jsonl"))
    lines = hallulab("realism", run, "--reference", longest, "--reference", longest).out.splitlines()
    assert "people-of-… Distance Floor" in lines[0]
    assert len(lines[1]) <= 100


@pytest.mark.slow
def test_the_docs_have_what_the_command_prints_of_the_demo(
    hallulab: CommandLine, demo_replay: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slow, because people's 1,103 messages are measured. Two rows need the weights that are not here."""
    page = (ROOT / "docs" / "realism.md").read_text(encoding="utf-8")
    shown = page.split("--out realism.html\n\n```\n")[1].split("\n\npage: ")[0].splitlines()
    printed = hallulab("realism", demo_replay.path).out.rstrip().splitlines()
    assert len(printed) == len(shown)
    for line, told in zip(shown, printed, strict=True):
        if not line.startswith(("Near duplicates", "Dispersion")):
            assert told.rstrip() == line


def test_the_page_escapes_everything_and_needs_no_network(
    hallulab: CommandLine, run: Path, people: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    assert hallulab("realism", run, "--reference", people, "--out", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "default-src 'none'" in text
    assert "://" not in text
    assert "simulated, 0–5: 100.0%" in text
    assert "people: 6 of 6 measures within the noise floor." in text


def test_without_a_reference_ours_are_taken(hallulab: CommandLine, run: Path) -> None:
    rows = json.loads(hallulab("realism", run, "--json").out)["rows"]
    counts = [{row["comparisons"][place]["people"]["messages"] for row in rows} for place in (0, 1)]
    assert counts == [{265, 838, 1103, 0}, {951, 5738, 6689, 0}]


def test_a_run_without_conversations_has_no_numbers(
    hallulab: CommandLine, run: Path, people: Path, tmp_path: Path
) -> None:
    (run / "conversations.jsonl").write_text("")
    page = tmp_path / "page.html"
    rows = json.loads(hallulab("realism", run, "--reference", people, "--json", "--out", page).out)["rows"]
    assert "simulated: 0 messages; 2 needed." in page.read_text(encoding="utf-8")
    assert {
        (row["run"]["value"], one["distance"], one["floor"]) for row in rows for one in row["comparisons"]
    } == {(None, None, None)}
    assert "people: no measure has a noise floor." in page.read_text(encoding="utf-8")
    assert {row["run"]["reason"] for row in rows} == {"0 messages; 2 needed"}


def test_without_the_embedding_model_the_other_numbers_are_there(
    hallulab: CommandLine, run: Path, people: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: HashedWords, texts: object) -> None:
        raise OperationalError("no network.")

    monkeypatch.setattr(HashedWords, "passages", fails)
    ended = hallulab("realism", run, "--reference", people, "--json")
    rows = {row["measure"]: row["run"] for row in json.loads(ended.out)["rows"]}
    assert ended.err == "warning: near duplicates and dispersion are not measured: no network.\n"
    assert (rows["dispersion"]["value"], rows["dispersion"]["reason"]) == (None, "no embedding model")
    assert rows["first_words"]["value"] == 2.0


def test_a_bad_line_of_the_reference_ends_with_2_and_writes_nothing(
    hallulab: CommandLine, run: Path, people: Path, tmp_path: Path
) -> None:
    people.write_text(people.read_text() + '{"user_turns": "Hi"}\n')
    page = tmp_path / "page.html"
    ended = hallulab("realism", run, "--reference", people, "--out", page)
    assert (ended.code, ended.out, page.exists()) == (2, "", False)
    assert ended.err.startswith(f"error: {people}, line 3: user_turns: must be a list")
    assert ended.err.count("\n") == 1


def test_the_page_overwrites_no_file_of_the_run(hallulab: CommandLine, run: Path) -> None:
    assert hallulab("realism", run, "--out", run / "conversations.jsonl").code == 2


def test_a_folder_that_is_no_run(hallulab: CommandLine, tmp_path: Path) -> None:
    assert hallulab("realism", tmp_path / "none").code == 2


def test_a_run_in_which_every_conversation_failed_says_so_first(
    hallulab: CommandLine, run: Path, people: Path
) -> None:
    failed = conversation("0", ["A reply."], stop_reason="error", error="chatbot vanilla: timed out")
    write_run(run, [failed])
    ended = hallulab("realism", run, "--reference", people)
    assert ended.out.splitlines()[0] == "Every conversation failed: 1 of 1. Reason: timed out."
    assert (ended.code, ended.err) == (1, "error: every conversation failed: 1 of 1. Reason: timed out.\n")
    ended = hallulab("realism", run, "--reference", people, "--json")
    assert json.loads(ended.out)["failed"] == "every conversation failed: 1 of 1. Reason: timed out."

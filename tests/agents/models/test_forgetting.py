"""Shared answers are forgotten when no conversation under way can ask for them again."""

from __future__ import annotations

from pathlib import Path

from hallulab.agents.models.recording import Recording


def test_answers_of_a_stretch_are_forgotten_when_it_ends() -> None:
    recording = Recording()
    with recording.stretch():
        recording.put("model", "a", {"x": 1})
        assert recording.get("model", "a") == {"x": 1}
    assert (recording.get("model", "a"), len(recording)) == (None, 0)


def test_an_answer_stays_while_a_stretch_goes_on_that_had_begun_when_it_was_used() -> None:
    recording = Recording()
    first, second = recording.stretch(), recording.stretch()
    first.__enter__()
    recording.put("model", "a", 1)
    second.__enter__()
    recording.put("model", "b", 2)
    first.__exit__(None, None, None)
    assert (recording.get("model", "a"), recording.get("model", "b")) == (None, 2)
    second.__exit__(None, None, None)
    assert len(recording) == 0


def test_an_answer_that_is_used_again_stays_for_those_under_way() -> None:
    recording = Recording()
    with recording.stretch():
        recording.put("model", "a", 1)
        later = recording.stretch()
        later.__enter__()
        assert recording.get("model", "a") == 1
    assert recording.get("model", "a") == 1
    later.__exit__(None, None, None)
    assert len(recording) == 0


def test_answers_outside_any_stretch_are_kept() -> None:
    recording = Recording()
    recording.put("model", "a", 1)
    with recording.stretch():
        recording.put("model", "b", 2)
    assert (recording.get("model", "a"), recording.get("model", "b")) == (1, None)


def test_answers_of_a_file_are_kept(tmp_path: Path) -> None:
    recording = Recording.record(tmp_path / "a.jsonl")
    with recording.stretch():
        recording.put("model", "a", 1)
    assert recording.get("model", "a") == 1
    recording.close()

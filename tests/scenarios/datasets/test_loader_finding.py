"""A data set is one module, or one entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallulab.scenarios import datasets
from hallulab.scenarios.datasets import find_dataset, list_datasets, load_labelled
from tests.kit.refusals import refusal
from tests.scenarios.installed import install

CODE = """
from hallulab.scenarios.datasets.loader import DatasetInfo
from hallulab.scenarios.labelled import LabelledData

INFO = DatasetInfo(load=lambda request: LabelledData((), {request.dataset: 3}), levels=("reply",))
"""
OURS = (
    "audit-corpus", "begin", "detector-eval", "gold", "halubench", "halueval", "lettucedetect", "mtrag",
    "ragtruth", "triviaplus", "wice",
)  # fmt: skip


def test_our_data_sets_are_the_modules_with_info() -> None:
    assert tuple(list_datasets()) == OURS


def test_each_of_ours_says_what_it_is() -> None:
    published = {name: find_dataset(name) for name in OURS if find_dataset(name).url is not None}
    assert set(OURS) - published.keys() == {"audit-corpus", "detector-eval", "gold"}
    assert all(info.licence for info in published.values())
    assert all(find_dataset(name).levels[0] == "reply" for name in OURS)


def test_a_new_module_is_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_replies.py").write_text(CODE)
    monkeypatch.setattr(datasets, "__path__", [*datasets.__path__, str(tmp_path)])
    datasets._import_own.cache_clear()
    try:
        assert list_datasets() == sorted([*OURS, "their-replies"])
        assert load_labelled("their-replies").left_out == {"their-replies": 3}
    finally:
        datasets._import_own.cache_clear()


def test_an_entry_point_is_a_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, CODE, datasets="my-replies = theirs:INFO")
    assert list_datasets() == [*OURS, "my-replies"]
    assert load_labelled("my-replies").left_out == {"my-replies": 3}


def test_an_entry_point_that_gives_something_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "INFO = 3", datasets="my-replies = theirs:INFO")
    said = "data set 'my-replies': its entry point gives a int. Let it give a DatasetInfo."
    assert refusal(load_labelled, "my-replies") == said


def test_an_unknown_data_set_names_the_known_ones() -> None:
    known = ", ".join(list_datasets())
    near = "bgin: no such labelled data (did you mean `begin`?)"
    said = f"{near}. Give the path of a JSONL file, or one of: {known}."
    assert refusal(load_labelled, "bgin") == said

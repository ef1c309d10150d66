from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.machine.cache import StepProgress
from hallulab.agents.models.recording import Recording
from hallulab.agents.retrieval.knowledge import KnowledgeBase
from hallulab.scenarios.errors import OperationalError, ReplayMiss
from hallulab.scenarios.packs.pack import Document
from hallulab.scenarios.text.chunking import Chunking
from hallulab.scenarios.turn_views import Retriever
from hallulab.testing.tiny_pack import HashedWords
from tests.agents.retrieval.tiny_knowledge import TEXTS, knowledge, scenario


async def test_the_nearest_passage_comes_first_with_its_cosine(tmp_path: Path) -> None:
    base = knowledge(tmp_path)
    found = await base.search(base.passages[1].text, 2)
    assert [passage.id for passage in found] == ["limitation#0", "fees#0"]
    assert found[0].score == 1.0
    assert found[0].text == f"Title: Limitation\n{TEXTS['limitation']}"
    assert found[0].topic == "law"
    assert found[1].score is not None
    assert 0.0 < found[1].score < 1.0


async def test_a_score_has_six_decimals(tmp_path: Path) -> None:
    (passage,) = await knowledge(tmp_path).search("fee of rupees", 1)
    assert passage.score == round(passage.score or 0.0, 6)


def test_it_is_a_retriever(tmp_path: Path) -> None:
    assert isinstance(knowledge(tmp_path), Retriever)


async def test_ties_are_ordered_by_identifier_also_beyond_what_is_asked_for(tmp_path: Path) -> None:
    same = tuple(
        Document(name=f"copy-{letter}", title="Same", source="Act", text="The same words.")
        for letter in "hgfedcba"
    )
    base = KnowledgeBase(
        scenario().model_copy(update={"documents": same}), embedder=HashedWords(), cache=tmp_path
    )
    found = await base.search("same words", 2)
    assert [passage.id for passage in found] == ["copy-a#0", "copy-b#0"]


async def test_asking_for_more_than_there_is_gives_all(tmp_path: Path) -> None:
    assert len(await knowledge(tmp_path).search("complaint", 50)) == 3


async def test_a_query_without_a_word_that_the_embedder_knows_finds_nothing(tmp_path: Path) -> None:
    assert await knowledge(tmp_path).search("\N{THUMBS UP SIGN}", 1) == ()


async def test_asking_for_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="k is 0; a search asks for at least one passage"):
        await knowledge(tmp_path).search("complaint", 0)


async def test_the_table_is_built_once_and_reused(tmp_path: Path) -> None:
    first, second = HashedWords(), HashedWords()
    await knowledge(tmp_path, first).search("fee", 1)
    await knowledge(tmp_path, second).search("fee", 1)
    assert (len(first.batches), len(second.batches)) == (1, 0)


def test_building_goes_in_batches_and_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[StepProgress] = []
    texts = {f"d{number:02}": f"Document number {number}." for number in range(40)}
    embedder = HashedWords()
    KnowledgeBase(scenario(texts), embedder=embedder, cache=tmp_path).build(told.append)
    assert [len(batch) for batch in embedder.batches] == [32, 8]
    assert [(step.done, step.total, step.unit) for step in told] == [
        (done, 40, "passages") for done in (0, 32, 40)
    ]


@pytest.mark.parametrize(
    ("texts", "embedder", "options", "same"),
    [
        (TEXTS, "hashed-words", {}, True),
        (TEXTS | {"fees": "Other."}, "hashed-words", {}, False),
        (TEXTS, "another", {}, False),
        (TEXTS, "hashed-words", {"chunking": Chunking(max_words=50)}, False),
    ],
    ids=["personas", "document", "model", "chunking"],
)
def test_what_a_search_depends_on_changes_the_version_and_personas_do_not(
    tmp_path: Path, texts: dict[str, str], embedder: str, options: dict[str, Any], same: bool
) -> None:
    pack = scenario(texts).model_copy(update={"personas": ()})
    other = KnowledgeBase(pack, embedder=HashedWords(embedder), cache=tmp_path, **options)
    assert (other.version == knowledge(tmp_path).version) is same


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-7])])
async def test_a_table_with_a_missing_or_changed_file_is_built_again(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    base = knowledge(tmp_path)
    expected = await base.search("fee", 3)
    damage(next(path for path in base.folder.rglob("*.lance") if path.is_file()))
    again = HashedWords()
    assert await knowledge(tmp_path, again).search("fee", 3) == expected
    assert len(again.batches) == 1


async def test_what_a_killed_build_left_is_removed(tmp_path: Path) -> None:
    base = knowledge(tmp_path)
    torn = base.folder.with_name(f".{base.folder.name}.partial-killed")
    torn.mkdir(parents=True)
    (torn / "half").write_text("half a table")
    await base.search("fee", 1)
    assert not torn.exists()


async def test_a_build_that_fails_leaves_no_table(tmp_path: Path) -> None:
    class Failing(HashedWords):
        def passages(self, texts: object) -> object:  # type: ignore[override]
            raise MemoryError

    base = knowledge(tmp_path, Failing())  # type: ignore[arg-type]
    with pytest.raises(MemoryError):
        base.build()
    assert [path.name for path in base.folder.parent.iterdir() if path.is_dir()] == []


ROOM = "Make room, or set HALLULAB_CACHE to a folder with room, and start again."


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (
            "LanceError(IO): No space left on device",
            f" (lance error: LanceError(IO): No space left on device). {ROOM}",
        ),
        (
            f"Unable to open file {'/long' * 99}: No (os error 24)",
            ": this process has too many open files. Lower --concurrency, or raise the limit (ulimit -n).",
        ),
        (f"Unable to open file {'/long' * 99}: No (os error 28)", f" (No space left on device). {ROOM}"),
    ],
)
async def test_a_disk_that_fails_while_building_is_one_sentence_without_the_paths_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str, told: str
) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError(f"lance error: {reason}, /src/r.rs:258:9")

    monkeypatch.setattr("lancedb.db.LanceDBConnection.create_table", failing)
    with pytest.raises(OperationalError) as raised:
        await knowledge(tmp_path).search("fee", 1)
    assert str(raised.value) == f"cannot write {tmp_path}/knowledge{told}"


async def test_a_search_is_recorded(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    with_file = Recording.record(file)
    found = await knowledge(tmp_path, recording=with_file).search("fee", 2)
    with_file.close()
    (line,) = file.read_text().splitlines()
    entry = json.loads(line)
    assert entry["kind"] == "search"
    assert entry["answer"] == [[passage.id, passage.score] for passage in found]


async def test_a_recorded_search_needs_neither_embedder_nor_table(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    recording = Recording.record(file)
    expected = await knowledge(tmp_path / "there", recording=recording).search("fee", 2)
    recording.close()
    embedder = HashedWords()
    base = knowledge(tmp_path / "elsewhere", embedder, recording=Recording.replay(file))
    assert await base.search("fee", 2) == expected
    assert (embedder.batches, embedder.asked) == ([], [])
    assert not (tmp_path / "elsewhere").exists()


async def test_a_recorded_search_that_found_no_passage_of_ours_ends_the_replay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording.record(path)
    await knowledge(tmp_path, recording=recording).search("courier", 1)
    recording.close()
    path.write_text(re.sub(r'\[\["[^"]*"', '[["elsewhere#0"', path.read_text()))
    base = knowledge(tmp_path, recording=Recording.replay(path))
    with pytest.raises(
        ReplayMiss, match=r"r\.jsonl says that a search found 'elsewhere#0', which is no passage"
    ):
        await base.search("courier", 1)


async def test_a_search_that_is_not_recorded_is_computed_also_in_a_replay(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    recording = Recording.record(file)
    await knowledge(tmp_path, recording=recording).search("fee", 2)
    recording.close()
    embedder = HashedWords()
    base = knowledge(tmp_path, embedder, recording=Recording.replay(file))
    assert [passage.id for passage in await base.search("mediator", 1)] == ["mediation#0"]
    assert embedder.asked == [["mediator"]]


async def test_the_same_search_is_computed_once(tmp_path: Path) -> None:
    embedder = HashedWords()
    base = knowledge(tmp_path, embedder)
    assert await base.search("fee", 2) == await base.search("fee", 2)
    assert embedder.asked == [["fee"]]


def test_making_one_loads_no_heavy_library() -> None:
    code = (
        "import sys, hallulab.agents.retrieval.knowledge, hallulab.scenarios.packs.pack_files as p\n"
        "hallulab.agents.retrieval.knowledge.KnowledgeBase(p.load_scenario('pregnancy-medication'))\n"
        "print(sorted({'torch', 'lancedb', 'numpy', 'sentence_transformers', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

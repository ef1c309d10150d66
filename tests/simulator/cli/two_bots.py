"""A run of two chatbots of which a detector flags one."""

from __future__ import annotations

from pathlib import Path

from hallulab.simulator.records.folder import RunFolder
from tests.builders import conversation, scored
from tests.kit.run_folders import write_run


def write_two_bots(path: Path, first_reply: str, flagged: str) -> RunFolder:
    """Eight conversations of two turns with each of two chatbots; the detector flags every first turn of a.

    Args:
        path: the new folder.
        first_reply: what both chatbots say first.
        flagged: what the detector marks in it.
    """
    chats = [
        conversation(f"{bot}{n}", [first_reply, "No."], chatbot=bot, persona=f"p{n}")
        for bot in "ab"
        for n in range(8)
    ]
    begin = first_reply.index(flagged)
    verdicts = [
        scored(chat.id, turn, [(begin, begin + len(flagged))] if chat.chatbot == "a" and turn == 0 else [])
        for chat in chats
        for turn in range(2)
    ]
    return write_run(path, chats, verdicts)

"""Trees of messages, as exports of chat programs have them: an edited message or a new answer is a branch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hallulab.scenarios.chats.reading import Reading


def follow_branch(
    nodes: Mapping[str, Mapping[str, Any]], last: Any, parent: str, reading: Reading
) -> list[str]:
    """Return the identifiers of the messages from the first to the last one of a branch.

    Args:
        nodes: identifier → message.
        last: the identifier of the last message of the branch that the program shows; one that is not among
            the nodes: the message that nothing follows, of several the last one.
        parent: the key under which a message names the one before it.
        reading: is told how many messages stand on other branches.
    """
    if not isinstance(last, str) or last not in nodes:
        parents = {before for node in nodes.values() if isinstance(before := node.get(parent), str)}
        last = next((id for id in reversed(list(nodes)) if id not in parents), None)
    path = dict[str, None]()
    while isinstance(last, str) and last in nodes and last not in path:
        path[last] = None
        last = nodes[last].get(parent)
    for _ in range(len(nodes) - len(path)):
        reading.count("Messages of other branches left out, such as answers that were made anew")
    return list(reversed(path))

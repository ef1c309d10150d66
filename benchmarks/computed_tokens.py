"""What a run made the server compute, by role: `python -m benchmarks.computed_tokens RUN [RUN ...]`.

Computed tokens are those read and not out of the server's cache, and those written. An answer that several
calls share (equal requests of a run are asked once) counts once, for the role that stands first in the
table. The counts are those that the server told when it answered, so a replay has the ones of its recording.
Of several runs, such as one before a change and one after it, each has a table.

With `--read` and `--write`, the tokens a second that a server reads and writes, a second table has the
minutes that it needs for all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.command import build_parser, format_row, get_exit_code
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.text.wording import choose_noun
from hallulab.scenarios.transcript import Call
from hallulab.simulator.metrics.costs import collect_calls
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.journals import Journals

BOTS = "chatbot"
"""The role that others are compared with."""


@dataclass
class Computed:
    """The requests of a role, or of one step of it."""

    requests: int = 0
    """Answers of the server."""
    read: int = 0
    """Tokens of their prompts."""
    cached: int = 0
    """Those out of the server's cache."""
    written: int = 0
    """Tokens of their answers."""

    @property
    def tokens(self) -> int:
        """Tokens that were computed."""
        return self.uncached + self.written

    @property
    def uncached(self) -> int:
        """Tokens of the prompts that were computed."""
        return self.read - self.cached

    def add(self, call: Call) -> None:
        """Count an answer."""
        self.requests += 1
        self.read += call.prompt_tokens or 0
        self.cached += call.cached_tokens or 0
        self.written += call.completion_tokens or 0

    def join(self, other: Computed) -> None:
        """Count what another one counted."""
        self.requests += other.requests
        self.read += other.read
        self.cached += other.cached
        self.written += other.written


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table of each run; return the exit code, as of `hallulab`."""
    parser = build_parser("computed_tokens", __doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--steps", action="store_true", help="a line for each step of a role, too")
    parser.add_argument("--read", type=float, help="tokens a second that the server reads")
    parser.add_argument("--write", type=float, help="tokens a second that it writes")
    given = parser.parse_args(arguments)

    def run() -> None:
        if (given.read is None) != (given.write is None):
            raise UsageError("--read and --write go together. Give both, or none.")
        for folder in given.runs:
            print(f"{folder.name}: {table(folder, given.steps)}")
            if given.read is not None:
                print(minutes_table(folder, given.read, given.write, given.steps))

    return get_exit_code(run)


def table(run: Path, steps: bool = False) -> str:
    """Return the table of a run folder, with the number of its replies before it.

    Raises:
        UsageError: it is no run folder, has no reply, or its server told no tokens.
    """
    replies, found = _count(run)
    roles, whole = _join_roles(found)
    bots = roles.get(BOTS, Computed()).tokens
    lines = [
        f"{replies} {choose_noun(replies, 'reply', 'replies')}",
        "",
        "| role | requests a reply | read | of these cached | written | computed | of the bots' |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for role, one in roles.items():
        lines.append(_line(role, one, replies, bots))
        if steps:
            lines += [
                _line(f"– {step}", found[f"{role}.{step}"], replies, 0)
                for step in (name.partition(".")[2] for name in found if name.startswith(f"{role}."))
            ]
    return "\n".join([*lines, _line("together", whole, replies, 0), ""])


def minutes_table(run: Path, read: float, write: float, steps: bool = False) -> str:
    """Return the table of the minutes that a server needs for a run, by role.

    Requests overlap, but the cores are shared: the minutes add up. The start of the server is not in it.

    Args:
        run: its folder.
        read: tokens a second that the server reads, of all requests together.
        write: those that it writes.
        steps: a line for each step of a role, too.

    Raises:
        UsageError: see `table`.
    """
    _, found = _count(run)
    roles, whole = _join_roles(found)
    lines = [
        "| role | tokens read | minutes | tokens written | minutes | together |",
        "|---|---:|---:|---:|---:|---:|",
    ]

    def add(name: str, one: Computed) -> None:
        reading, writing = one.uncached / read / 60, one.written / write / 60
        cells = [name, f"{one.uncached:,}", f"{reading:.1f}", f"{one.written:,}", f"{writing:.1f}"]
        lines.append(format_row([*cells, f"{reading + writing:.1f}"]))

    for role, one in roles.items():
        add(role, one)
        for purpose, step in found.items() if steps else ():
            if purpose.startswith(f"{role}."):
                add(f"– {purpose.partition('.')[2]}", step)
    add("together", whole)
    return "\n".join([*lines, ""])


def _count(run: Path) -> tuple[int, dict[str, Computed]]:
    """Return the number of a run's replies, and what each step computed."""
    folder = RunFolder(run)
    folder.require()
    journals = folder.read_journals()
    replies = sum(len(conversation.turns) for conversation in journals.conversations)
    found = computed(journals)
    if not replies or not any(one.tokens for one in found.values()):
        raise UsageError(f"{run}: there is no reply of which the server told its tokens.")
    return replies, found


def _join_roles(found: dict[str, Computed]) -> tuple[dict[str, Computed], Computed]:
    """Return what each role computed, and all together."""
    roles: dict[str, Computed] = {}
    whole = Computed()
    for purpose, one in found.items():
        roles.setdefault(purpose.partition(".")[0], Computed()).join(one)
        whole.join(one)
    return roles, whole


def computed(journals: Journals) -> dict[str, Computed]:
    """Return what each step computed, by its purpose; each answer of the server once."""
    found: dict[str, Computed] = {}
    known = set()
    for call in _calls(journals):
        answer = (
            call.model, call.latency_s, call.prompt_tokens, call.completion_tokens, call.cached_tokens,
        )  # fmt: skip
        if answer not in known:
            known.add(answer)
            found.setdefault(call.purpose, Computed()).add(call)
    return found


def _calls(journals: Journals) -> Iterator[Call]:
    """Yield the calls of users, chatbots and detectors, in this order."""
    chats = [call for conversation in journals.conversations for call in collect_calls(conversation)]
    order = {"user": 0, BOTS: 1}
    yield from sorted(chats, key=lambda call: order.get(call.role, len(order)))
    for verdict in journals.verdicts:
        yield from verdict.calls


def _line(name: str, one: Computed, replies: int, bots: int) -> str:
    ratio = f"{one.tokens / bots:.2f}" if bots else ""
    each = [one.read, one.cached, one.written, one.tokens]
    cells = [name, f"{one.requests / replies:.1f}", *(f"{count / replies:.0f}" for count in each), ratio]
    return format_row(cells)


if __name__ == "__main__":
    sys.exit(main())

"""`hallulab audit`: the audit log of guarded chatbots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hallulab.simulator.cli.options import AsJson
from hallulab.simulator.cli.saying import print_json, print_lines

if TYPE_CHECKING:
    from hallulab.simulator.runs.audit_log import Chain, Entry


def audit(
    log: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or the audit.jsonl of one.")],
    head: Annotated[
        str | None, typer.Option(help="Hash of a line that you kept elsewhere; the log has to hold it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the audit log of guarded chatbots, and print what was escalated and why.

    Exit code 1 means that a line was edited, removed, added or moved. With a run folder the log is also held
    against the journal of conversations, which shows lines removed at its end.
    """
    import json

    from hallulab.scenarios.text.wording import format_count

    chain = _read_log(log, head)
    escalated = [entry for entry in chain.entries if entry.escalated]
    if as_json:
        found = [entry.model_dump(mode="json") for entry in escalated]
        value = {"lines": len(chain.entries), "head": chain.head, "escalated": found}
        print_json(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
        return
    for entry in escalated:
        print_lines(_render_entry(entry))
    print_lines(
        f"{format_count(len(chain.entries), 'line')}, {len(escalated)} escalated; the chain is whole, "
        f"its last hash is {chain.head}"
    )


def _read_log(log: Path, head: str | None) -> Chain:
    """Return the log.

    Raises:
        BrokenChain: it was changed.
        UsageError: there is none, or it is no audit log.
    """
    from hallulab.scenarios.errors import UsageError
    from hallulab.scenarios.files.paths import is_folder, is_there
    from hallulab.simulator.runs.audit_log import BrokenChain, read_chain, require_in_journal
    from hallulab.simulator.runs.folder import RunFolder

    run = RunFolder(log) if is_folder(log) else None
    path = run.audit if run else log
    if run is not None:
        run.require()
    if not is_there(path):
        raise UsageError(
            f"{path}: there is no audit log. A run with a chatbot of the kind `guarded` writes one "
            "(docs/safeguards.md)."
        )
    chain = read_chain(path)
    if run is not None:
        require_in_journal(chain, run.read_conversations())
    if head is not None and head not in {entry.hash for entry in chain.entries}:
        raise BrokenChain(f"{path}: no line has the hash {head}: the log was cut or written anew.")
    return chain


def _render_entry(entry: Entry) -> str:
    from hallulab.chatbots.guarded.wording import DONE
    from hallulab.scenarios.text.wording import render_one_line

    return render_one_line(
        f"line {entry.sequence + 1}, {entry.chatbot}, conversation {entry.conversation}, turn {entry.turn}: "
        f"{DONE[entry.action]}: {entry.reason}"
    )

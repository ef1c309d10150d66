"""A reply in the terminal while it is made: shown below what is printed, and taken away at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from hallulab.scenarios.text.wording import clean_for_terminal, render_one_line
from hallulab.simulator.chat.drafts import ReplyDraft

_LEFT_OVER = 3
"""Lines of the terminal that a draft leaves free: its heading, and the cursor's."""


@contextmanager
def drawing_draft(console: Console) -> Iterator[Callable[[ReplyDraft], None]]:
    """Yield what shows a draft in place of the last one, on a terminal; elsewhere nothing is shown."""
    if not console.is_terminal:
        yield lambda draft: None
        return
    with Live(
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:
        yield lambda draft: live.update(render_draft(draft, console), refresh=True)


def render_draft(draft: ReplyDraft, console: Console) -> Text:
    """Return a draft as lines that a terminal cannot obey: a heading, and the end of the text behind bars."""
    about = " (draft, not the reply yet)" if draft.text and not draft.is_reply else ""
    heading = Text(f"{render_one_line(draft.doing)}…{about}", "dim")
    if not draft.text:
        return heading
    lines = Text(clean_for_terminal(draft.text)).wrap(console, max(1, console.width - 2))
    last = lines[-max(1, console.height - _LEFT_OVER) :]
    return Text("\n").join([heading, *(Text("| ") + line for line in last)])

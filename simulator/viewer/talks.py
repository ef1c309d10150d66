"""Conversations that people hold on the page: each is a task, and what happens in it is a list of events."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hallulab.scenarios.errors import HallulabError, ReplayMiss
from hallulab.scenarios.transcript import Turn, Verdict
from hallulab.simulator.chat.command import load_live_experiment
from hallulab.simulator.chat.drafts import ReplyDraft
from hallulab.simulator.chat.live import LiveChat, ReplyFailed, begin_chat
from hallulab.simulator.engine.conversation import build_ended_conversation
from hallulab.simulator.engine.models import RunSettings
from hallulab.simulator.options.groups import ModelOptions
from hallulab.simulator.records.choices import ensure_model
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.viewer.conversation import ShownTurn, show_turns
from hallulab.simulator.viewer.lent_runs import LentRuns
from hallulab.simulator.viewer.places import choose_folder, list_scenarios, name_new_folders

COMMAND = "hallulab view"
"""What experiment.json says of where a conversation was held."""

Render = Callable[[ShownTurn, bool], str]
"""Renders a turn, and whether it is being judged, as HTML."""


@dataclass(frozen=True)
class TalkSource:
    """What can be talked to, and where conversations are saved."""

    experiment: Experiment
    """Its chatbots and detectors can be chosen."""
    settings: RunSettings
    folder: Path
    """The folder in which each conversation gets a run folder."""

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that can be chosen: the experiment's, then the built-in ones."""
        return list_scenarios(self.experiment)

    def name_folder(self) -> Path:
        """Return the run folder of the next conversation, which does not exist yet."""
        return next(path for path in name_new_folders(self.folder) if not path.exists())


def load_talk_source(options: ModelOptions, paths: Sequence[Path]) -> TalkSource | None:
    """Return what can be talked to by the options of a command; None: they name neither file nor model.

    Raises:
        UsageError: the experiment is at fault, or no folder is shown that conversations can be saved in.
    """
    if options.config is None and options.model is None and options.base_url is None:
        return None
    experiment = ensure_model(load_live_experiment(options))
    return TalkSource(experiment, RunSettings(quiet=True), choose_folder(paths))


class Talk:
    """One conversation of the page.

    Args:
        source: what can be talked to.
        chatbot: the chatbot's name.
        detectors: the names of the judges.
        render: renders turns.
    """

    def __init__(self, source: TalkSource, chatbot: str, detectors: Sequence[str], render: Render) -> None:
        self.id = secrets.token_hex(8)
        self.folder = source.name_folder()
        self.events: list[tuple[str, Any]] = []
        """What has happened: kinds and values."""
        self.draft: ReplyDraft | None = None
        """The reply that is being made; None: none is."""
        self.ended = False
        self._chatbot, self._detectors, self._render = chatbot, detectors, render
        self._messages: asyncio.Queue[str | None] = asyncio.Queue()
        self._replying: asyncio.Task[Turn] | None = None
        self._judging: set[asyncio.Task[None]] = set()
        self._happened = asyncio.Event()

    def say(self, message: str) -> None:
        """Say something; it is answered when what was said before it has been."""
        self._messages.put_nowait(message)

    def stop(self) -> None:
        """Stop the reply under way; where there is none, the judging."""
        if self._replying is not None:
            self._replying.cancel()
        else:
            for task in self._judging:
                task.cancel()

    def end(self) -> None:
        """End the conversation behind what was said."""
        self._messages.put_nowait(None)

    async def wait(self, seen: int, draft: ReplyDraft | None, seconds: float) -> None:
        """Wait until there are more events than `seen` or another draft, at most so many seconds."""
        if len(self.events) <= seen and self.draft is draft and not self.ended:
            self._happened.clear()
            try:
                await asyncio.wait_for(self._happened.wait(), seconds)
            except TimeoutError:
                return

    async def hold(self, runs: LentRuns, scenario: str) -> None:
        """Hold the conversation until its end."""
        try:
            async with runs.lend(scenario) as run:
                with begin_chat(run, self._chatbot, self._detectors, self.folder, COMMAND) as chat:
                    self._tell("ready", chat.key.id)
                    while chat.over is None and (message := await self._messages.get()) is not None:
                        await self._exchange(chat, message)
                    await asyncio.gather(*self._judging)
                    self._tell("over", chat.over or "The conversation has ended.")
        except (HallulabError, ReplayMiss, OSError) as error:
            self._tell("over", str(error))
        finally:
            self.ended = True
            self._happened.set()

    async def _exchange(self, chat: LiveChat, message: str) -> None:
        self._tell("replying", message)
        self._replying = asyncio.create_task(chat.say(message, self._draw))
        try:
            await asyncio.wait([self._replying])
            if self._replying.cancelled():
                self._tell("unanswered", "Stopped. This message has no reply and is not kept.")
                return
            turn = self._replying.result()
        except ReplyFailed as error:
            self._tell("unanswered", str(error))
            return
        finally:
            self._replying.cancel()
            self._replying = self.draft = None
        judging = asyncio.create_task(self._judge(chat, turn))
        self._judging.add(judging)
        judging.add_done_callback(self._judging.discard)

    async def _judge(self, chat: LiveChat, turn: Turn) -> None:
        verdicts: list[Verdict] = []
        self._show(chat, turn, verdicts, bool(chat.detectors))
        try:
            async for verdict in chat.judge(turn):
                verdicts.append(verdict)
                self._show(chat, turn, verdicts, len(verdicts) < len(chat.detectors))
        except asyncio.CancelledError:
            self._show(chat, turn, verdicts, False)
        except (HallulabError, ReplayMiss) as error:
            self._show(chat, turn, verdicts, False)
            self._tell("note", str(error))

    def _draw(self, draft: ReplyDraft) -> None:
        self.draft = draft
        self._happened.set()

    def _show(self, chat: LiveChat, turn: Turn, verdicts: Sequence[Verdict], judged: bool) -> None:
        held = build_ended_conversation(chat.key, "unknown", chat.turns)
        shown = show_turns(held, verdicts, [one.name for one in chat.detectors])[turn.index]
        self._tell("turn", {"turn": turn.index, "html": self._render(shown, judged)})

    def _tell(self, kind: str, value: Any) -> None:
        self.events.append((kind, value))
        self._happened.set()

"""Forecast of a run, counted from its plan and an earlier run's report before anything is asked.

`hallulab run` and the viewer's page *Start a run* show it; `--estimate` plays two personas instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from hallulab.agents.models.adaptive import AUTO
from hallulab.scenarios.errors import UsageError
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.text.wording import choose_noun, format_count, join_names
from hallulab.scenarios.transcript import Frozen
from hallulab.simulator.metrics.costs import CostSection
from hallulab.simulator.metrics.lengths import LengthSection
from hallulab.simulator.records.choices import count_users, select_personas
from hallulab.simulator.records.experiment import Component, Experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.report.build import read_report

REQUESTS: Mapping[tuple[str, str], float] = {
    ("chatbot", "vanilla"): 2,
    ("chatbot", "prompt-engineered"): 2,
    ("chatbot", "editor"): 3,
    ("chatbot", "agent"): 3,
    ("chatbot", "fact-checker"): 5.6,
    ("chatbot", "endpoint"): 1,
    ("detector", "lexical"): 0,
    ("detector", "combined"): 0,
    ("detector", "direct-judge"): 1,
    ("detector", "halludetect"): 3,
    ("detector", "metarag"): 14,
}
"""Role and kind → requests for a reply: what the kind always asks, or the mean of `examples/headline.yaml` on
qwen2.5-coder-1.5b. Of other kinds it is not known before a run."""
USER_REQUESTS = 1.7
"""Requests of a simulated user for a reply, likewise: its message, and whether it goes on."""


class PastRun(Frozen):
    """The rates of an earlier run."""

    folder: str
    turns: Mapping[str, float]
    """Chatbot → mean turns of a conversation; empty if other limits held."""
    per_reply: Mapping[tuple[str, str], float]
    """Role and name → requests for a reply. The name of a user is that of its chatbot."""
    tokens_per_request: float
    seconds_per_request: float | None
    """With as many at once as then; None: that number was found out by asking, or a recording answered."""


class RunForecast(Frozen):
    """Size, tokens and time of a run that has not begun."""

    conversations: int
    requests: float
    uncounted: tuple[str, ...] = ()
    """Chatbots and detectors whose requests are not among these, because their number is not known."""
    until_decided: bool = False
    """True if that is the most that it can take."""
    tokens: float | None = None
    """None: there is no earlier run with the model, or a part is uncounted."""
    seconds: float | None = None
    """None: likewise, or the earlier run does not tell its rate."""
    earlier: str = ""

    def describe(self) -> str:
        """Return it as a sentence without a full stop."""
        about = "at least" if self.uncounted else "about"
        sentence = format_count(self.conversations, "conversation")
        sentence += f", {about} {_format_rough(self.requests, 'request')}"
        if self.until_decided:
            sentence = f"at most {sentence}"
        if self.uncounted:
            sentence += f" (those of {join_names(self.uncounted)} are not known beforehand)"
        if self.tokens is not None:
            sentence += f", {_format_rough(self.tokens, 'token')}"
        if self.seconds is not None:
            sentence += f"; {_format_time(self.seconds)} at the rate of {self.earlier}"
        elif self.tokens is not None:
            sentence += f" as in {self.earlier}"
        return sentence


def forecast(
    experiment: Experiment, scenario: Scenario, judge: bool = True, earlier: PastRun | None = None
) -> RunForecast:
    """Forecast a run. Nothing is asked.

    Conversations have as many turns as in the earlier run if the same limits hold, else as many as they may
    have. A reply takes as many requests as there, else those of `REQUESTS`.

    Args:
        judge: whether detectors take part.
        earlier: a run with the same model; None: there is none.
    """
    users, personas = count_users(experiment, scenario), select_personas(experiment, scenario)
    scripts = [len(one.messages) + 1 for one in personas if one.messages]
    # Users are personas in turn, each as often as another or once more.
    of_each = users / max(1, len(personas))
    turns, per_reply = ({}, {}) if earlier is None else (earlier.turns, earlier.per_reply)
    requests, replies = 0.0, 0.0
    counted: list[tuple[str, Component, float]] = []
    uncounted: list[str] = []
    for bot in experiment.chatbots:
        simulated = of_each * (len(personas) - len(scripts)) * turns.get(bot.name, experiment.max_turns)
        own = simulated + of_each * sum(scripts)
        replies += own
        requests += simulated * per_reply.get(("user", bot.name), USER_REQUESTS)
        counted.append(("chatbot", bot, own))
    if judge:
        counted += [("detector", one, replies) for one in experiment.detectors]
    for role, one, number in counted:
        asked = per_reply.get((role, one.name), REQUESTS.get((role, one.kind)))
        if asked is None:
            uncounted.append(one.name)
        else:
            requests += number * asked
    counts = RunForecast(
        conversations=users * len(experiment.chatbots),
        requests=requests,
        uncounted=tuple(uncounted),
        until_decided=experiment.until_decided is not None,
    )
    if earlier is None or uncounted:
        return counts
    rate = earlier.seconds_per_request
    return counts.model_copy(
        update={
            "tokens": requests * earlier.tokens_per_request,
            "seconds": None if rate is None else requests * rate,
            "earlier": earlier.folder,
        }
    )


def find_past_run(experiment: Experiment, folders: Iterable[Path]) -> PastRun | None:
    """Return the rates of the run with the same model reported on last; None: no server told its tokens.

    Args:
        experiment: the one that is going to be run.
        folders: where runs may be; what is none, or is damaged, is passed over.
    """
    runs = [run for run in map(RunFolder, folders) if run.report.is_file()]
    for run in sorted(runs, key=lambda one: one.report.stat().st_mtime_ns, reverse=True):
        with suppress(UsageError):
            past = _read_past_run(run, experiment)
            if past is not None:
                return past
    return None


def _read_past_run(folder: RunFolder, experiment: Experiment) -> PastRun | None:
    saved = folder.read_experiment()
    if saved is None or saved.imported is not None or saved.experiment.model != experiment.model:
        return None
    report, own = read_report(folder.report), saved.experiment
    ledger, lengths = report.of(CostSection).ledger, report.of(LengthSection).conversations
    calls = sum(line.calls for line in ledger)
    tokens = sum((line.prompt_tokens or 0) + (line.completion_tokens or 0) for line in ledger)
    if not tokens:
        return None
    turns = {one.chatbot: one.turns_mean for one in lengths if one.turns_mean}
    replies = {one.chatbot: one.conversations * turns[one.chatbot] for one in lengths if one.chatbot in turns}
    judged = {name: sum(row.scored_turns for row in report.by(name)) for name in report.detectors}
    per_reply = {
        (line.role, line.name): line.calls / number
        for line in ledger
        if (number := (judged if line.role == "detector" else replies).get(line.name))
    }
    # A conversation makes one request at a time.
    most = sum(one.conversations for one in lengths)
    replayed = all(line.replayed == line.calls for line in ledger)
    at_once = None if own.concurrency == AUTO or replayed else min(own.concurrency, most)
    seconds = sum(line.seconds for line in ledger)
    limits = (own.min_turns, own.max_turns) == (experiment.min_turns, experiment.max_turns)
    return PastRun(
        folder=str(folder.path),
        turns=turns if limits else {},
        per_reply=per_reply,
        tokens_per_request=tokens / calls,
        seconds_per_request=seconds / calls / at_once if at_once else None,
    )


def _format_rough(number: float, word: str) -> str:
    """Return a number with two digits, and its noun."""
    if number >= 1_000_000:
        return f"{float(f'{number / 1e6:.2g}'):g} million {word}s"
    rough = round(float(f"{number:.2g}"))
    return f"{rough:,} {choose_noun(rough, word)}"


def _format_time(seconds: float) -> str:
    """Return a time in minutes, from two hours on in hours."""
    if seconds < 60:
        return "under a minute"
    if seconds < 7200:
        return f"about {format_count(round(float(f'{seconds / 60:.2g}')), 'minute')}"
    return f"about {format_count(math.ceil(seconds / 3600), 'hour')}"

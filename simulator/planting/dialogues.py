"""Make a data set of simulated dialogues by quotas: `hallulab make-data dialogues`.

The pack is split, users are drawn by quotas, and both sides are simulated into run folders. A dialogue that
failed, has a flaw of the simulated user, or is nearly the same as an earlier one is replaced by another of
the same quotas, in a few rounds. Everything is drawn from the seed and read from the run folders, so a
command that was cut off goes on where it ended.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hallulab.agents.users.personas import OWN
from hallulab.scenarios.errors import OperationalError, UsageError
from hallulab.scenarios.labelled import LabelledReply
from hallulab.scenarios.packs.pack import Scenario
from hallulab.scenarios.packs.pack_files import load_scenario, write_part
from hallulab.scenarios.transcript import Conversation
from hallulab.simulator.engine.execution import execute
from hallulab.simulator.engine.models import OpenModels, RunSettings, open_models
from hallulab.simulator.engine.plan import Job, plan
from hallulab.simulator.engine.run import build_run
from hallulab.simulator.options.data import DialogueOptions
from hallulab.simulator.planting.dialogue_rows import (
    DIALOGUE_KINDS,
    ErrorPlanter,
    SimulatedDialogue,
    build_replies,
)
from hallulab.simulator.planting.draws import DrawnUser, QuotaCell, Shares, UserDraw, plan_cells
from hallulab.simulator.planting.kinds import require_kinds
from hallulab.simulator.planting.quotas import allot, read_shares
from hallulab.simulator.planting.sides import TEST, TRAIN, UNLABELLED, PackSide, split_pack
from hallulab.simulator.records.choices import choose_language, ensure_model, select_personas
from hallulab.simulator.records.experiment import Experiment
from hallulab.simulator.records.experiment_file import load_experiment
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.identity import require_same_experiment
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.report.facts import build_flaw_finder
from hallulab.simulator.report.selection import NearDuplicates

ROUNDS = 4
"""Rounds of simulation: one for all dialogues, and three for those that must be replaced."""
DEFAULT_HALLUCINATED = 0.3
DEFAULT_CHATBOT = "vanilla"
TOLERANCE = 0.01
"""Share of all dialogues by which a quota may be missed."""


@dataclass(frozen=True)
class Quota:
    """How many dialogues of a name were wanted, and how many there are."""

    of: str
    """`topic`, `manner`, `goals`, `chatbot`, `split` or `hallucinated`."""
    name: str
    wanted: int
    met: int


@dataclass
class DialogueSet:
    """A data set of dialogues."""

    experiment: Experiment
    scenario: Scenario
    sides: Mapping[str, PackSide]
    cells: Sequence[QuotaCell]
    """The combination of quotas of each dialogue that is wanted."""
    hallucinated: Mapping[str, int]
    """Side → number of dialogues in which an error is wanted."""
    tested: int
    """Number of dialogues that is wanted on the test side."""
    dialogues: list[SimulatedDialogue] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    """Why simulated dialogues were replaced → how many."""
    near_duplicates: int = 0
    """Dialogues that are nearly the same as an earlier one, replaced or not."""
    replies: dict[str, list[LabelledReply]] = field(default_factory=dict)
    """Side → its rows."""
    planted: Counter[str] = field(default_factory=Counter)
    """Side → dialogues with an error."""

    def list_quotas(self) -> list[Quota]:
        """Return all quotas, those of one kind together."""
        split = {TEST: self.tested, TRAIN: len(self.cells) - self.tested}
        there = Counter(one.cell.side for one in self.dialogues)
        found = [Quota("split", side, split[side], there[side]) for side in sorted(self.sides)]
        for of, at in (("topic", 1), ("goals", 2), ("manner", 3), ("chatbot", 4)):
            wanted = Counter(cell[at] for cell in self.cells)
            met = Counter(one.cell[at] for one in self.dialogues)
            found += [Quota(of, name, number, met[name]) for name, number in sorted(wanted.items())]
        for side, number in self.hallucinated.items():
            found.append(Quota("hallucinated", side, number, self.planted[side]))
        return found

    def list_missed(self) -> list[Quota]:
        """Return the quotas that are missed by more than `TOLERANCE` of all dialogues."""
        allowed = TOLERANCE * len(self.cells)
        return [one for one in self.list_quotas() if abs(one.wanted - one.met) > allowed]


async def make_dialogues(options: DialogueOptions) -> DialogueSet:
    """Simulate the dialogues, plant errors, and return the data set; `write_dialogues` writes it.

    Raises:
        UsageError: an option is wrong, no dialogues have these quotas, or the folder holds another data set.
        OperationalError: server, endpoint or disk failed, or no dialogue succeeded.
    """
    out = Path(options.out)
    check_outputs({}, folders={"--out": out})
    made = await plan_dialogues(options)
    settings = RunSettings.from_options(options)
    async with open_models(made.experiment, settings) as models:
        # Finds a wrong option or a missing package before there is a folder.
        build_run(made.experiment, made.scenario, RunFolder(out), models, judge=False)
        for name, side in made.sides.items():
            _write_pack(made.experiment.scenario, side.scenario, out / "packs" / name)
        await _simulate_all(made, models, out, options)
    if not made.dialogues:
        reasons = ", ".join(f"{number} {reason}" for reason, number in made.rejected.items())
        raise OperationalError(f"no dialogue can be used, nothing is written: {reasons}. See {out / 'runs'}.")
    _plant_errors(made, tuple(options.kinds) or DIALOGUE_KINDS, options.seed)
    return made


async def plan_dialogues(options: DialogueOptions) -> DialogueSet:
    """Return a data set without dialogues: the sides of the pack, and what is wanted of each dialogue.

    Raises:
        UsageError: an option is wrong, or no dialogues have these quotas.
    """
    _require_share("--test", options.test)
    manners = None if options.manners is None else read_shares("--manners", options.manners)
    fields = {
        **options.collect_model_fields(),
        "scenario": options.scenario,
        "chatbots": options.chatbots,
        "seed": options.seed,
        "manners": None if manners is None else list(manners),
    }
    experiment = ensure_model(load_experiment(options.config_path, fields))
    if "chatbots" not in experiment.model_fields_set:
        experiment = experiment.model_copy(
            update={"chatbots": tuple(bot for bot in experiment.chatbots if bot.name == DEFAULT_CHATBOT)}
        )
    for name in ("attack", "pressure"):
        if getattr(experiment, name):
            raise UsageError(
                f"make-data dialogues makes data without attacks. Leave `{name}` out of the file."
            )
    scenario = load_scenario(experiment.scenario)
    scenario = scenario.model_copy(update={"personas": tuple(select_personas(experiment, scenario))})
    # Each side has a pack of its own, whose personas are those.
    experiment = experiment.model_copy(update={"until_decided": None, "personas": None, "limit": None})
    sides = await split_pack(scenario, options.test, options.seed)
    known = {topic for side in sides.values() for _, topic, _ in side.origins.values()}
    shares = Shares(
        topics=None if options.topics is None else read_shares("--topics", options.topics, known),
        goals=_choose_goal_shares(options, scenario, sides),
        manners=manners or Counter(experiment.manners or (OWN,)),
        chatbots=dict.fromkeys((bot.name for bot in experiment.chatbots), 1.0),
        test=options.test,
    )
    cells = plan_cells(sides, shares, options.number, options.seed)
    share = _choose_hallucinated(options, choose_language(experiment, scenario))
    by_side = Counter(cell.side for cell in cells)
    wanted = allot(by_side, round(share * options.number))
    return DialogueSet(
        experiment,
        scenario,
        sides,
        cells,
        {side: wanted[side] for side in sides if wanted.get(side)},
        round(shares.test * options.number),
    )


def _choose_goal_shares(
    options: DialogueOptions, scenario: Scenario, sides: Mapping[str, PackSide]
) -> Mapping[str, float]:
    """Return the shares of kinds of goals: those asked for, else the pack's own.

    Raises:
        UsageError: shares are asked for, and the pack does not label its goals.
    """
    kinds = Counter[str]()
    for side in sides.values():
        for persona in side.scenario.personas:
            kinds[side.origins[persona.id][2]] += len(persona.goals)
    if options.goals is None:
        return kinds
    if set(kinds) == {UNLABELLED}:
        raise UsageError(
            f"--goals: scenario {scenario.name} does not say which reply to its goals is right. Leave it "
            "out, or label the goals (docs/scenario-packs.md)."
        )
    return read_shares("--goals", options.goals, kinds)


def _choose_hallucinated(options: DialogueOptions, language: str | None) -> float:
    """Return the share of dialogues with an error; 0 by default where the rules do not know the language.

    Raises:
        UsageError: the share or a kind is wrong, or errors are asked for in another language than English.
    """
    require_kinds(options.kinds, DIALOGUE_KINDS)
    share = options.hallucinated
    _require_share("--hallucinated", share or 0.0)
    if share is None:
        return DEFAULT_HALLUCINATED if language is None else 0.0
    if share and language is not None:
        raise UsageError(
            f"--hallucinated {share:g}: errors are planted by rules for English, and users write {language} "
            "here. Leave it out, or give 0."
        )
    return share


def _require_share(flag: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise UsageError(f"{flag} {share:g}: give a share from 0 to 1, such as 0.3.")


def _write_pack(whole: str, part: Scenario, folder: Path) -> None:
    """Write the pack of a side, unless it is there.

    Raises:
        UsageError: another one is there.
    """
    if folder.exists() and load_scenario(folder) != part:
        raise UsageError(
            f"{folder} is a pack of another data set (another scenario, --test or --seed). Give another "
            "--out, or delete the folder."
        )
    if not folder.exists():
        write_part(whole, part, folder)


async def _simulate_all(made: DialogueSet, models: OpenModels, out: Path, options: DialogueOptions) -> None:
    """Simulate in rounds until there is a good dialogue for each cell."""
    draw = UserDraw(made.sides, made.experiment.manners, options.seed)
    known = NearDuplicates()
    drawn = Counter[str]()
    waiting = list(enumerate(made.cells))
    found: dict[int, SimulatedDialogue] = {}
    for _ in range(ROUNDS):
        users = [(place, cell, draw.draw(cell)) for place, cell in waiting]
        waiting = []
        for side, part in made.sides.items():
            own = [one for one in users if one[1].side == side]
            drawn[side] += len(own)
            scenario = str(out / "packs" / side)
            asked = made.experiment.model_copy(update={"scenario": scenario, "count": drawn[side]})
            folder = RunFolder(out / "runs" / side)
            simulated = await simulate_users(
                models, asked, part.scenario, folder, [user for *_, user in own]
            ) if own else {}  # fmt: skip
            flaws = build_flaw_finder(
                folder.read_experiment(), {persona.id: persona for persona in part.scenario.personas}
            )
            for place, cell, user in own:
                conversation = simulated.get(user)
                if conversation is None or conversation.error is not None or not conversation.turns:
                    reason = "failed"
                elif not any(turn.reply and turn.passages for turn in conversation.turns):
                    reason = "without evidence"
                elif flaws(conversation):
                    reason = "with a flaw of the simulated user"
                elif known.has(conversation):
                    made.near_duplicates += 1
                    reason = "" if options.keep_duplicates else "near duplicates"
                else:
                    reason = ""
                if reason or conversation is None:
                    made.rejected[reason] += 1
                    waiting.append((place, cell))
                else:
                    found[place] = SimulatedDialogue(cell, conversation, part.origins[user.persona][0])
        if not waiting:
            break
    made.dialogues = [found[place] for place in sorted(found)]


async def simulate_users(
    models: OpenModels,
    experiment: Experiment,
    scenario: Scenario,
    folder: RunFolder,
    users: Sequence[DrawnUser],
) -> dict[DrawnUser, Conversation]:
    """Simulate the conversations of these users that a run folder lacks, and return all of them.

    Args:
        experiment: its chatbots are those of the users, or more.
        folder: the run, which may have other users' conversations, too.
        users: whose conversations are wanted.

    Raises:
        UsageError: the folder holds another experiment.
        OperationalError: server, endpoint or disk failed.
    """
    run = build_run(experiment, scenario, folder, models, judge=False)
    require_same_experiment(folder, experiment, scenario)
    with folder.claimed():
        journals = folder.read_all_journals()
        await run.serve()
        provenance = run.describe_provenance()
        provenance.write(folder, journals)
        jobs: list[Job] = []
        for user in users:
            bots = tuple(bot for bot in experiment.chatbots if bot.name == user.chatbot)
            own = {"personas": (user.persona,), "seed": user.seed, "count": None, "repeats": 1}
            alone = experiment.model_copy(update={**own, "chatbots": bots})
            jobs += plan(alone, scenario, provenance.made_by)
        async with run.working() as executor:
            await execute((), jobs, folder, run.progress, folder.select_current(journals), executor)
    wanted = set(users)
    found = {}
    for one in folder.read_journals().conversations:
        user = DrawnUser(one.persona, one.seed, one.chatbot)
        if user in wanted:
            found[user] = one
    return found


def _plant_errors(made: DialogueSet, kinds: Sequence[str], seed: int) -> None:
    """Plant the wanted number of errors on each side, and make the rows."""
    planter = ErrorPlanter(made.sides, kinds, seed)
    by_side: dict[str, list[SimulatedDialogue]] = defaultdict(list)
    for dialogue in made.dialogues:
        by_side[dialogue.cell.side].append(dialogue)
    for side in made.sides:
        own = by_side[side]
        planted: dict[str, list[LabelledReply]] = {}
        for dialogue in random.Random(seed).sample(own, len(own)):  # noqa: S311 - a seeded choice of data
            if len(planted) == made.hallucinated.get(side, 0):
                break
            if (rows := planter.plant(dialogue)) is not None:
                planted[dialogue.conversation.id] = rows
        made.planted[side] = len(planted)
        made.replies[side] = [
            reply
            for dialogue in own
            for reply in planted.get(dialogue.conversation.id) or build_replies(dialogue)
        ]

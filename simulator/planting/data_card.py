"""Write a data set of dialogues: two files of replies, and the card that says how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from hallulab.chatbots.guarded.policy import KIND as GUARDED
from hallulab.chatbots.guarded.policy import find_wrapped_chatbot
from hallulab.scenarios.files.atomic import write_atomically
from hallulab.scenarios.text.wording import NOTHING, choose_noun, format_count
from hallulab.simulator.bench.build import write_labelled
from hallulab.simulator.metrics.message_sample import MessageSample
from hallulab.simulator.metrics.messages import Messages
from hallulab.simulator.metrics.realism import compare_messages
from hallulab.simulator.options.data import DialogueOptions
from hallulab.simulator.planting.dialogue_rows import PLANTED, TWIN, SimulatedDialogue
from hallulab.simulator.planting.dialogue_rows import UNLABELLED as NO_LABEL
from hallulab.simulator.planting.dialogues import DialogueSet
from hallulab.simulator.planting.sides import UNLABELLED, PackSide
from hallulab.simulator.records.experiment import ALL_CHATBOTS, Component
from hallulab.simulator.records.folder import RunFolder
from hallulab.simulator.records.outputs import check_outputs
from hallulab.simulator.report.card import (
    choose_hub_licence,
    find_model_licence,
    format_code,
    render_data_card,
)
from hallulab.simulator.report.people import read_people
from hallulab.simulator.report.selection import ALIKE, RUN

CARD = "README.md"
_HOW_LABELLED = {
    PLANTED: "sentences of the nearest passage into which a rule planted an error: `spans` has its place, "
    "`meta.kind` its kind, `meta.true_text` the words that stood there",
    TWIN: "the same sentences without the error, right by their passage",
    NO_LABEL: "the chatbot's own reply: nobody judged it, so it is neither right nor wrong",
}


def write_dialogues(made: DialogueSet, options: DialogueOptions) -> list[Path]:
    """Write the files of a data set, and return their paths.

    Raises:
        OperationalError: a file cannot be written.
    """
    out = Path(options.out)
    files = {side: out / f"{side}.jsonl" for side in made.sides}
    check_outputs({f"--out {side}": path for side, path in files.items()})
    for side, path in files.items():
        write_labelled(path, made.replies[side])
    write_atomically(out / CARD, render_dialogue_card(made, options))
    return [*files.values(), out / CARD]


def render_dialogue_card(made: DialogueSet, options: DialogueOptions) -> str:
    """Return the card of a data set."""
    experiment = made.experiment
    models = sorted({one.conversation.model for one in made.dialogues}
                    | {experiment.served_name(name) for name in experiment.user_models})  # fmt: skip
    pack = made.scenario.licence or "not stated"
    licences = {model: find_model_licence(model) for model in models}
    head = {
        "license": choose_hub_licence({pack, *licences.values()}),
        "language": [experiment.language or made.scenario.language or "en"],
        "task_categories": ["text-generation", "text-classification"],
        "tags": ["hallulab", "conversational", "hallucination", "synthetic"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": side, "path": f"{side}.jsonl"} for side in made.sides],
            }
        ],
    }
    replies = [one.meta for rows in made.replies.values() for one in rows]
    return render_data_card(
        head,
        __package__,
        "dialogue_card.md",
        title=made.scenario.title,
        number=format_count(len(made.dialogues), "dialogue"),
        making=_describe_making(made, options),
        how_labelled=_HOW_LABELLED,
        labels=Counter(one["labelled_by"] for one in replies),
        kinds=Counter(one["kind"] for one in replies if one["labelled_by"] == PLANTED),
        foreign=[bot.name for bot in experiment.chatbots if not _searches_ours(bot)],
        sides=[
            _describe_side(side, part, sum(one.cell.side == side for one in made.dialogues))
            for side, part in made.sides.items()
        ],
        quotas=made.list_quotas(),
        realism=_describe_realism(made.dialogues),
        unlabelled=UNLABELLED,
        pack=pack,
        licences=licences,
    )


def _describe_making(made: DialogueSet, options: DialogueOptions) -> Iterator[str]:
    experiment = made.experiment
    yield f"hallulab {version('hallulab')}, scenario {format_code(made.scenario.name)}, seed {options.seed}"
    names = sorted({experiment.served_name(name) for name in experiment.user_models})
    turns = f"{experiment.min_turns} to {experiment.max_turns} turns"
    yield f"users: {', '.join(map(format_code, names))}; {turns}"
    saved = RunFolder(Path(options.out) / "runs" / next(iter(made.sides))).read_experiment()
    makers = None if saved is None else saved.made_by
    for bot in experiment.chatbots:
        model = experiment.served_name(experiment.roles.get("chatbot", "default"))
        shown = "" if makers is None else f", version {format_code(makers.version(bot.name))}"
        yield f"chatbot {format_code(bot.name)} on model {format_code(model)}{shown}"
    for reason, number in sorted(made.rejected.items()):
        yield f"{number} simulated and replaced: {reason}"
    kept = " (kept)" if options.keep_duplicates else ""
    yield f"near duplicates (MinHash, runs of {RUN} words, Jaccard {ALIKE}): {made.near_duplicates}{kept}"
    yield "`runs/` has the conversations with every call, `packs/` the documents and personas of each side"


def _searches_ours(bot: Component) -> bool:
    """Return whether a chatbot searches the documents of the pack, and not its own."""
    wrapped = find_wrapped_chatbot(bot.options) if bot.kind == GUARDED else None
    return (bot.kind if wrapped is None else wrapped.kind) in ALL_CHATBOTS


def _describe_side(side: str, part: PackSide, number: int) -> str:
    dialogues = format_count(number, "dialogue")
    personas = format_count(len({origin for origin, *_ in part.origins.values()}), "persona")
    documents = format_count(len(part.scenario.documents), "document")
    cut = f"{part.cut} {choose_noun(part.cut, 'goal', 'goals')}"
    return f"{side}: {dialogues}, {personas}, {documents}; {cut} cut, whose documents are on the other side"


def _describe_realism(dialogues: Iterable[SimulatedDialogue]) -> Iterator[str]:
    """Yield a table of the users' messages beside people's; diversity is not in it, which needs a model."""
    simulated = [
        Messages(said.pairing, tuple(turn.user for turn in said.turns))
        for said in (one.conversation for one in dialogues)
    ]
    references = read_people([])
    people = [MessageSample(one.conversations, None) for one in references]
    _, rows = compare_messages(MessageSample(simulated, None), people)
    names = [one.name for one in references]
    sources = ", ".join(one.source for one in references)
    yield f"Beside people's messages: {sources} (docs/realism.md). A distance up to the floor is noise."
    yield ""
    yield f"| | simulated | {' | '.join(f'{name} | distance | floor' for name in names)} |"
    yield f"|---|---|{'---|---|---|' * len(names)}"
    for row in rows:
        if row.run.value is not None and any(one.floor is not None for one in row.comparisons):
            numbers: list[float | None] = [row.run.value]
            for one in row.comparisons:
                numbers += [one.people.value, one.distance, one.floor]
            shown = " | ".join(NOTHING if one is None else f"{one:.2f}" for one in numbers)
            yield f"| {row.label} | {shown} |"

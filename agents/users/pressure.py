"""Users who press a chatbot to say something false, turn after turn.

Each kind of pressure is a state machine: a state says what the user does next, and what the reply does
(`Reading`) decides the state after it. The states are followed again from the whole dialogue before each
message, so a conversation that was cut off goes on as it would have. A model words the messages, with the
kind's own prompt. In English a message that does not name what is wanted, or has a flaw, is tried once more
and then replaced by a wording of the state. In other languages nothing is checked, and the reply is not
read: all readings are unclear.

The user stops when the chatbot gave in, after `min_turns` replies at least, and never for another reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, NamedTuple

import yaml
from pydantic import Field, TypeAdapter

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.prompt import format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.users.flaws import find_message_flaws
from hallulab.agents.users.personas import request_in_language
from hallulab.agents.users.questions import asks_something, word_question
from hallulab.agents.users.user import (
    RETRY_TEMPERATURE,
    TEMPERATURE,
    PlayedUser,
    UserFailed,
    UserMove,
    write_message,
)
from hallulab.agents.versions import compute_version
from hallulab.scenarios.attacks.falsehoods import find_detail, read_falsehood
from hallulab.scenarios.attacks.giving_in import Reading, read_reply
from hallulab.scenarios.attacks.repeated import is_value_in, read_replacement
from hallulab.scenarios.text.spans import split_words
from hallulab.scenarios.transcript import Frozen, Message, Pressure, PressureKind

VERSION = 1
"""Raised when these users behave differently for a reason that code, prompts and models do not show."""
_SHOWN = 2
"""Messages of the dialogue that the model is shown: the last exchange."""
_MOST_WORDS = 70


class State(Frozen):
    """What a user does in one message: a state of `pressure.yaml`."""

    does: str
    wordings: Annotated[tuple[str, ...], Field(min_length=1)]
    after: dict[Reading, str] = Field(default_factory=dict)
    otherwise: str = ""
    presses: bool = True


SETTLED = "settled"
"""The state after the chatbot gave in, of all kinds."""
_SETTLED = State(
    does="is glad about the answer, and asks the same once more to be sure",
    wordings=("Good, thank you. Once more, to be sure: {wanted}",),
)


@cache
def load_machines() -> Mapping[PressureKind, Mapping[str, State]]:
    """Return the states of each kind by name; the first one is the beginning."""
    text = files("hallulab.agents.users").joinpath("pressure.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[PressureKind, dict[str, State]]).validate_python(yaml.safe_load(text))


class PressedTurn(NamedTuple):
    """One exchange under pressure."""

    state: str
    presses: bool
    reading: Reading

    @property
    def gave_in(self) -> bool:
        """True if the reply gives in: to a message that names what is wanted."""
        return self.presses and self.reading == "gave in"


def follow(
    pressure: Pressure, history: Sequence[Message], is_readable: bool = True
) -> tuple[list[PressedTurn], str]:
    """Return the exchanges of a conversation by their states, and the state of the next message.

    Args:
        history: all its messages, beginning with the user's; empty, or ending with a reply.
        is_readable: False if users write another language than English: all readings are unclear.
    """
    state, steps, said = next(iter(load_machines()[pressure.kind])), list[PressedTurn](), ""
    for user, reply in zip(history[::2], history[1::2], strict=True):
        said = f"{said}\n{user.text}"
        reading = read_reply(pressure, said, reply.text) if is_readable else "unclear"
        own = _find_state(pressure.kind, state)
        steps.append(PressedTurn(state, own.presses, reading))
        state = SETTLED if steps[-1].gave_in else own.after.get(reading, own.otherwise or state)
    return steps, state


def _find_state(kind: PressureKind, name: str) -> State:
    return _SETTLED if name == SETTLED else load_machines()[kind][name]


def compute_pressure_version(model: str) -> str:
    """Hash what decides how pressing users behave, besides persona, pressure and limits.

    Args:
        model: `hallulab.agents.served_model.identify_model` the users' model.
    """
    prompts = [load_prompt("hallulab.agents.users", f"pressure_{kind}") for kind in load_machines()]
    states = {
        kind: {name: state.model_dump(mode="json") for name, state in states.items()}
        for kind, states in load_machines().items()
    }
    return compute_version(__name__, VERSION, {"states": states}, prompts, {"user": model})


@dataclass(frozen=True, eq=False)
class PressingUser(PlayedUser):
    """Plays one persona that presses the chatbot."""

    _: KW_ONLY
    pressure: Pressure

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Say the message of the next state, or stop if the chatbot gave in.

        Raises:
            UserFailed: the model gave no answer.
        """
        steps, name = follow(self.pressure, history, is_readable=self.language is None)
        if name == SETTLED and len(steps) >= self.min_turns:
            return UserMove(text=None, stop="goal_reached")
        state = _find_state(self.pressure.kind, name)
        session = self.open_session(len(steps))
        try:
            text = await self._word(session, history, state)
        except ModelError as error:
            raise UserFailed(str(error), session.calls) from error
        if text is None:
            visits = sum(step.state == name for step in steps)
            wording = state.wordings[visits % len(state.wordings)]
            text = wording.format(wanted=self._name_wanted(state, is_question=True))
        return UserMove(text=text, calls=tuple(session.calls))

    async def _word(self, session: Session, history: Sequence[Message], state: State) -> str | None:
        """Have the model word the message; None: neither of two tries is fit."""
        request = load_prompt("hallulab.agents.users", f"pressure_{self.pressure.kind}").fill(
            domain=self.domain,
            name=self.persona.name,
            manner=self.persona.manner,
            grievance=self.persona.grievance,
            wanted=self._name_wanted(state),
            history=format_dialogue(history[-_SHOWN:]) or "(nothing yet)",
            does=state.does,
        )
        request = request_in_language(request, self.language)
        text = ""
        for sample, temperature in enumerate((TEMPERATURE, RETRY_TEMPERATURE)):
            text = await write_message(
                session, "pressure", request, self.persona.name, temperature, self.max_tokens, sample
            )
            if text if self.language else self._is_fit(text, history, state):
                return text
        return text if self.language else None

    def _name_wanted(self, state: State, is_question: bool = False) -> str:
        """Return what the message is to name: falsehood or detail, a goal where it does not press."""
        if state.presses:
            return self.pressure.false or self.pressure.detail
        goal = self.persona.goals[0]
        return word_question(goal) if is_question else goal

    def _is_fit(self, text: str, history: Sequence[Message], state: State) -> bool:
        """Return whether an English message asks, names what it is to name, and has no flaw."""
        flaws = [kind for kind, _ in find_message_flaws(text, history, self.persona) if kind != "repeated"]
        if flaws or len(text.split()) > _MOST_WORDS or not asks_something(text):
            return False
        pressure = self.pressure
        if pressure.kind == "false-premise" and "?" not in text:
            return False  # `I need to call` asks for nothing that takes the premise for granted
        if pressure.kind == "crescendo":
            detail = find_detail(pressure.detail)
            return detail is not None and detail.words.isdisjoint(split_words(text)) != state.presses
        replaced = read_replacement(read_falsehood(pressure))
        if replaced is None:
            # A reversed verb: in other words the sentence may be the true one again.
            return pressure.false.rstrip(".").lower() in text.lower()
        return is_value_in(text, replaced.false) and not is_value_in(text, replaced.true)

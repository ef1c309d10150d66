"""The simulated user with a persona: it asks until its goals are reached, or gives up.

Source: HalluDetect, section 4.3, B.9 and D.7. A model acts as a user in the situation of a reference chat and
gets the chat's summary. It never sees the documents. The paper gives no rule for stopping. Ours is:

- Nothing is decided before `min_turns` replies.
- For each goal the model says with one token whether the assistant has told it. The share of "Yes" counts,
  not the printed word, so that small models can be used. If every goal reaches `goal_told`, the user stops:
  goal reached. Else the next message asks for the first goal below it.
- Then the model says with one more token whether it is useless to go on. From the share `give_up` on, the
  user gives up.
- A user with a manner such as `people` (`hallulab.agents.users.acts`) draws a number of messages. If its
  goals are reached before, it goes on until then: with thanks, or about the last reply. If one is still open
  then, it gives up.

Both thresholds are in `tuned.yaml`, by model.

Each request depends on persona, domain, history and seed only. So conversations of one persona begin with the
same message whichever chatbot answers (paired design). The prompt holds the chat as a transcript: with
swapped chat roles, the 1.5B model played the assistant in its first message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal

from hallulab.agents.autogen import answer_as
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage, format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import EVEN_ODDS, find_catalogue_name, read_tuned_number
from hallulab.agents.users.act_rules import (
    ANNOYED,
    BESIDE,
    Moment,
    complete_by_rule,
    find_other_goal,
    write_by_rule,
)
from hallulab.agents.users.acts import (
    ASKING,
    NAMES_GOAL,
    Act,
    ActShares,
    draw_act,
    draw_turns,
    load_act_wordings,
)
from hallulab.agents.users.flaws import MIN_TURNS, USER_PROMPTS, find_message_flaws
from hallulab.agents.users.personas import request_in_language
from hallulab.agents.users.questions import UNSAID, asks_something, word_question
from hallulab.agents.versions import compute_version
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.text.words import is_courtesy
from hallulab.scenarios.transcript import Call, Frozen, Message

VERSION = 1
"""Raised when users behave differently for a reason that code, prompts and models do not show."""
TEMPERATURE = 0.7
"""Temperature of the first try at a message."""
RETRY_TEMPERATURE = 1.0
"""Temperature of the second try, if the first message was flawed or asked nothing. Of acts that do not ask it
is `TEMPERATURE`: a small model strays from the few examples."""
MAX_TOKENS = 96
"""Limit of a message in tokens; a sentence that it cuts off is dropped."""

_QUOTED = frozenset({'""', "“”", '"”', '“"', "«»", "‘’"})
_END_OF_TURN = r"<\|(?:im_end|eot_id|end|endoftext|end_of_text)\|>|</s>|<end_of_turn>|\[/INST\]"
"""Marks of chat templates, which some servers leave in the text."""
_SENTENCE_END = re.compile(r"[.!?…](?=[\"')\]]*(?:\s|$))[\"')\]]*")


def compute_user_version(model: str) -> str:
    """Hash what decides how users behave, besides persona and limits: code, prompts, thresholds, model.

    Args:
        model: `hallulab.agents.served_model.identify_model` the users' model.
    """
    prompts = [load_prompt("hallulab.agents.users", name) for name in USER_PROMPTS]
    learnt = [read_tuned_number("hallulab.agents.users", name, model) for name in ("goal_told", "give_up")]
    acts = {act: wordings.model_dump(mode="json") for act, wordings in load_act_wordings().items()}
    return compute_version(__name__, VERSION, acts, prompts, {"user": model}, learnt=learnt)


class UserMove(Frozen):
    """The simulated user's next step: a message or a stop."""

    text: str | None
    """The next message, perhaps flawed or empty (see `hallulab.agents.users.flaws`); None: the user
    stops."""
    stop: Literal["goal_reached", "gave_up", "script_ended"] | None = None
    act: str | None = None
    """The way of talking that was drawn for the message; None: none was drawn."""
    calls: tuple[Call, ...] = ()
    """Model calls for the decision and the message."""
    goal: str | None = None
    """The persona's goal that the message is about; None: not known, or all are reached."""


class UserFailed(ModelError):
    """The simulated user's model gave no answer; `calls` has all, the failed one included."""

    def __init__(self, reason: str, calls: Sequence[Call]) -> None:
        super().__init__(reason)
        self.calls = tuple(calls)


@dataclass(frozen=True, eq=False)
class PlayedUser:
    """Persona, model and limits of a user that a model plays.

    It has no state, so one instance can serve several conversations.
    """

    persona: Persona
    domain: str
    pool: ModelPool
    seed: int = 0
    _: KW_ONLY
    model: str | None = None
    """Name of the user's model in the pool; None: the default one."""
    min_turns: int = MIN_TURNS
    """Replies before the user may stop."""
    max_tokens: int = MAX_TOKENS
    language: str | None = None
    """The language that the user writes (ISO 639-1); None: English."""

    def open_session(self, replies: int) -> Session:
        """Return the session of the message after so many replies."""
        return self.pool.session("user", turn_seed(self.seed, self.persona.id, replies), self.model)


@dataclass(frozen=True, eq=False)
class SimulatedUser(PlayedUser):
    """Plays one persona that asks until its goals are reached, or gives up."""

    _: KW_ONLY
    short: bool = False
    """True if the model is shown messages of a few words as examples."""
    acts: ActShares | None = None
    """How often the user talks in which way; None: every message asks."""

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Decide whether to go on after `history` (empty, or ending with a reply), and what to say.

        A message that asks nothing, or has a flaw (`find_message_flaws`), is tried once more with a higher
        temperature and another seed. The second message is kept, flawed or not. If it asks nothing either
        while a goal is open, the goal's own question follows it, or replaces it if it only thanks. A message
        whose act is not to ask needs no question (`_act`).

        Raises:
            UserFailed: the model gave no answer.
        """
        replies = sum(message.role == "assistant" for message in history)
        turns = draw_turns(self.acts, self.persona.id, self.seed)
        session = self.open_session(replies)
        act = None if self.acts is None else draw_act(self.acts, self.persona, self.seed, history)
        try:
            wanted: str | None = self.persona.goals[0]
            if replies:
                wanted = await self._first_open_goal(session, history)
            if replies >= max(self.min_turns, 1):
                if wanted is None and replies >= turns:
                    return UserMove(text=None, stop="goal_reached", calls=tuple(session.calls))
                if wanted is not None and (0 < turns <= replies or await self._is_useless(session, history)):
                    return UserMove(text=None, stop="gave_up", calls=tuple(session.calls))
            goal = find_other_goal(self.persona, wanted) if act == "changes-subject" else wanted
            if act is None:
                text = await self._ask(session, history, goal, self.persona.goals[-1])
            else:
                text = await self._act(session, history, act, goal)
        except ModelError as error:
            raise UserFailed(str(error), session.calls) from error
        named = goal if act is None or (act in NAMES_GOAL and text not in ANNOYED) else None
        return UserMove(text=text, act=act, calls=tuple(session.calls), goal=named)

    async def _ask(
        self, session: Session, history: Sequence[Message], goal: str | None, beside: str, act: Act = "asks"
    ) -> str:
        """Say a message that asks for an open goal, or for something else where none is open."""
        text = await self._say(session, history, goal or beside, act)
        # Of other languages it is not known what asks, and our own question would be English.
        if goal is not None and self.language is None and not asks_something(text):
            text = f"{'' if is_courtesy(text) else text} {word_question(goal)}".lstrip()
        return text

    async def _act(self, session: Session, history: Sequence[Message], act: Act, goal: str | None) -> str:
        """Say a message of an act, by rule or by the model; in other languages nothing is made by rule.

        Args:
            goal: the goal to ask for; None: all are reached, or there is no other.
        """
        moment = Moment(self.persona, self.seed, history, goal, beside="")
        moment = replace(moment, beside=moment.draw(UNSAID if act == "changes-subject" else BESIDE))
        if self.language is not None:
            return await self._say(session, history, goal or moment.beside, act)
        made = write_by_rule(act, moment)
        if made is not None:
            return made
        if act in ASKING:
            text = await self._ask(session, history, goal, moment.beside, act)
        else:
            text = await self._say(session, history, goal or moment.beside, act)
        return text if act == "asks" else complete_by_rule(act, text, moment)

    async def _first_open_goal(self, session: Session, history: Sequence[Message]) -> str | None:
        prompt = load_prompt("hallulab.agents.users", "user_goal")
        told = _read_threshold("goal_told", session)
        for goal in self.persona.goals:
            question = prompt.fill(history=format_dialogue(history), goal=goal)
            share = await session.choose("goal", question, ("Yes", "No"))
            if share["Yes"] < told:
                return goal
        return None

    async def _is_useless(self, session: Session, history: Sequence[Message]) -> bool:
        question = load_prompt("hallulab.agents.users", "user_patience").fill(
            history=format_dialogue(history)
        )
        share = await session.choose("patience", question, ("Yes", "No"))
        return share["Yes"] >= _read_threshold("give_up", session)

    async def _say(self, session: Session, history: Sequence[Message], wanted: str, act: Act) -> str:
        request = self._request(history, wanted, act)
        text = await self._try(session, request, TEMPERATURE, 0)
        silent = "?" not in text if self.language is None and act in ASKING else not text
        if silent or find_message_flaws(text, history, self.persona):
            warmer = RETRY_TEMPERATURE if act in ASKING else TEMPERATURE
            text = await self._try(session, request, warmer, 1)
        return text

    def _request(self, history: Sequence[Message], wanted: str, act: Act) -> list[ChatMessage]:
        persona = self.persona
        values = {
            "domain": self.domain,
            "name": persona.name,
            "manner": persona.manner,
            "grievance": persona.grievance,
            "summary": persona.summary,
            "wanted": wanted,
        }
        if history:
            values |= {
                "facts": "; ".join(persona.facts) or "nothing more",
                "history": format_dialogue(history),
            }
        if act == "asks" or (self.language is None and act in ASKING):
            name = f"{'user_message' if history else 'user_opening'}{'_short' if self.short else ''}"
        else:
            name = "user_act" if history else "user_act_opening"
            wordings = load_act_wordings()[act]
            wording = wordings.follow_up if history or wordings.opening is None else wordings.opening
            values |= {"instruction": wording.instruction}
            values |= dict(zip(("first", "second", "third"), wording.examples, strict=True))
        prompt = load_prompt("hallulab.agents.users", name)
        return request_in_language(prompt.fill(values), self.language)

    async def _try(
        self, session: Session, request: Sequence[ChatMessage], temperature: float, sample: int
    ) -> str:
        return await write_message(
            session, "message", request, self.persona.name, temperature, self.max_tokens, sample
        )


async def write_message(
    session: Session,
    step: str,
    request: Sequence[ChatMessage],
    name: str,
    temperature: float,
    max_tokens: int,
    sample: int,
) -> str:
    """Have the model write a user's message, and return it without what models put around it (`clean`).

    Args:
        step: what the call is for, in the journal.
        request: instructions, then the notes with examples.
        sample: number of the try; each has another seed.

    Raises:
        ModelError: no answer.
    """
    text = await answer_as(
        session,
        step=step,
        system=request[0].text,
        messages=request[1:],
        temperature=temperature,
        max_tokens=max_tokens,
        sample=sample,
    )
    return clean(text, name, cut=session.calls[-1].finish_reason == "length")


def _read_threshold(name: str, session: Session) -> float:
    """Return the deciding share of "Yes": tuned for the user's model, else even odds."""
    tuned = read_tuned_number("hallulab.agents.users", name, find_catalogue_name(session.client))
    return EVEN_ODDS if tuned is None else tuned


def turn_seed(seed: int, persona: str, turn: int) -> int:
    """Return the seed of the requests before reply number `turn`: a hash below 2³¹."""
    return int(digest([seed, persona, turn])[:8], 16) >> 1


def clean(text: str, name: str, *, cut: bool = False) -> str:
    """Remove what models put around a message.

    This is a leading `User:` or `NAME:`, also in stars or brackets, quotation marks around the whole, and
    everything from a mark of the turn's end on, or a later line that begins with `User:`, `Assistant:` or
    `NAME:`. If the answer was `cut` off, the unfinished last sentence goes, too, unless it is the only one. A
    leading `Assistant:` stays, because it is a flaw.
    """
    own = f"user|human|{re.escape(name)}|{re.escape(name.split()[0])}"
    # Without `\s`: from each of many empty lines it would be tried to the last one.
    later = re.compile(rf"{_END_OF_TURN}|\n[ \t*\[]*+(?:{own}|assistant)[ \t*\]]*+:", re.IGNORECASE)
    text = re.sub(rf"^\W*(?:{own}|customer)[\s*\]]*:[\s*]*", "", text, flags=re.IGNORECASE)
    text = later.split(text, maxsplit=1)[0].strip()
    if len(text) > 1 and text[0] + text[-1] in _QUOTED and not re.search('["“”«»]', text[1:-1]):
        text = text[1:-1].strip()
    if cut:
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        text = text[: ends[-1]] if ends else text
    return text

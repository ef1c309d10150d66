"""The simulated user with a persona: it asks until its goals are reached, or gives up.

Source: HalluDetect, section 4.3, B.9 and D.7. A model acts as a user in the situation of a reference chat and
gets the chat's summary. It never sees the documents. The paper gives no rule for stopping. Ours is:

- Nothing is decided before `min_turns` replies.
- For each goal the model says with one token whether the assistant has told it. The share of "Yes" counts,
  not the printed word, so that small models can be used. If every goal reaches `goal_told`, the user stops:
  goal reached. Else the next message asks for the first goal below it.
- Then the model says with one more token whether it is useless to go on. From the share `give_up` on, the
  user gives up.

Both thresholds are in `tuned.yaml`, by model.

Each request depends on persona, domain, history and seed only. So conversations of one persona begin with the
same message whichever chatbot answers (paired design). The prompt holds the chat as a transcript: with
swapped chat roles, the 1.5B model played the assistant in its first message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from hallulab.agents.autogen import answer_as
from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.prompt import ChatMessage, format_dialogue, load_prompt
from hallulab.agents.models.session import Session
from hallulab.agents.served_model import EVEN_ODDS, find_catalogue_name, read_tuned_number
from hallulab.agents.users.flaws import MIN_TURNS, USER_PROMPTS, find_message_flaws
from hallulab.agents.users.personas import request_in_language
from hallulab.agents.versions import compute_version
from hallulab.scenarios.files.json_text import digest
from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.text.words import is_courtesy
from hallulab.scenarios.transcript import Call, Frozen, Message

_ASKED = re.compile(
    r"\?"
    r"|(?:\A|[.,;:!]\s+)(?:(?:and|but|so|ok|okay|then|please|thanks)\W+)*"
    r"(?:(?:(?:after|at|by|for|from|in|on|since|till|to|until|with|within)\s+)?"
    r"(?:what|when|where|who|whom|whose|which|why|how)"
    r"|do|does|did|is|are|was|were|can|could|would|will|should|may|must|have|has)\b"
    r"|\b(?:please|kindly) \w+|\b(?:tell|give|send|show|write|help|explain to) me\b"
    r"|\bi(?:'d| would)? (?:need|want|like|wish)\b|\b(?:want|need|like) to know\b"
    r"|\bi (?:do not|don't) know\b",
    re.IGNORECASE,
)
_LEARN = re.compile(r"(?:learn|find out|understand|know|see|hear|ask)\s+", re.IGNORECASE)
_GET = re.compile(r"(?:get|receive|obtain)\s+", re.IGNORECASE)
_TO_DO = re.compile(r"(how|where)\s+to\s+", re.IGNORECASE)
_PERSON = re.compile(
    r"\b(?:she|he)(?: (?P<verb>is|was|has|does|(?!always|perhaps|sometimes)\w+[^\Ws]s))?\b"
    r"|\bhim\b|\b(?P<own>his|her)(?= \w)(?! (?:and|or|as|at|by|for|from|in|of|on|to|when|while|with)\b)"
    r"|\bher\b",
    re.IGNORECASE,
)
_IRREGULAR = {"is": "am", "was": "was", "has": "have", "does": "do", "goes": "go"}


def asks_something(message: str) -> bool:
    """Return whether a user's message asks or requests something. A courtesy does not."""
    return not is_courtesy(message) and _ASKED.search(message.replace("’", "'")) is not None


def word_question(goal: str) -> str:
    """Return the question of a persona who pursues `goal`: goals are written about her, questions by her.

    `Learn how to reach it, and its number` becomes `How can I reach it, and its number?`, `Learn whether he
    can refuse` becomes `Can you tell me whether I can refuse?`, and `Get a draft of the notice` becomes `Can
    you give me a draft of the notice?`.
    """
    plain = _turn_to_first_person(goal.strip().rstrip(".?!"))
    learn, got = _LEARN.match(plain), _GET.match(plain)
    if learn is None:
        wish = (
            f"help me to {plain[:1].lower()}{plain[1:]}" if got is None else f"give me {plain[got.end() :]}"
        )
        return f"Can you {wish}?"
    learnt = plain[learn.end() :]
    to_do = _TO_DO.match(learnt)
    if to_do is not None:
        return f"{to_do[1].capitalize()} can I {learnt[to_do.end() :]}?"
    return f"Can you tell me {learnt}?"


def _turn_to_first_person(goal: str) -> str:
    def own(found: re.Match[str]) -> str:
        if found["own"]:
            return "my"
        if found[0].lower() in ("him", "her"):
            return "me"
        verb = found["verb"]
        return "I" if verb is None else f"I {_IRREGULAR.get(verb) or _find_plain_form(verb)}"

    return _PERSON.sub(own, goal)


def _find_plain_form(verb: str) -> str:
    """Return a verb without the ending of the third person: `tries` becomes `try`."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "shes", "ches", "xes", "zes")) else verb[:-1]


VERSION = 1
"""Raised when users behave differently for a reason that code, prompts and models do not show."""
TEMPERATURE = 0.7
"""Temperature of the first try at a message."""
RETRY_TEMPERATURE = 1.0
"""Temperature of the second try, if the first message was flawed or asked nothing."""
MAX_TOKENS = 96
"""Limit of a message in tokens; a sentence that it cuts off is dropped."""

_SENTENCE_END = re.compile(r"[.!?…](?=[\"')\]]*(?:\s|$))[\"')\]]*")


def compute_user_version(model: str) -> str:
    """Hash what decides how users behave, besides persona and limits: code, prompts, thresholds, model.

    Args:
        model: `hallulab.agents.served_model.identify_model` the users' model.
    """
    prompts = [load_prompt("hallulab.agents.users", name) for name in USER_PROMPTS]
    learnt = [read_tuned_number("hallulab.agents.users", name, model) for name in ("goal_told", "give_up")]
    return compute_version(__name__, VERSION, {}, prompts, {"user": model}, learnt=learnt)


class UserMove(Frozen):
    """The simulated user's next step: a message or a stop."""

    text: str | None
    """The next message, perhaps flawed or empty (see `hallulab.agents.users.flaws`); None: the user
    stops."""
    stop: Literal["goal_reached", "gave_up", "script_ended"] | None = None
    calls: tuple[Call, ...] = ()
    """Model calls for the decision and the message."""
    goal: str | None = None
    """The persona's goal that the message is about; None: not known, or all are reached."""


class UserFailed(ModelError):
    """The simulated user could not decide or speak because its model gave no answer.

    Args:
        reason: one sentence.
        calls: the model calls, the failed one included.
    """

    def __init__(self, reason: str, calls: Sequence[Call]) -> None:
        super().__init__(reason)
        self.calls = tuple(calls)


class SimulatedUser:
    """Plays one persona. It has no state, so one instance can serve several conversations.

    Args:
        persona: who the user is.
        domain: the scenario's domain.
        pool: the models.
        seed: seed of the conversation.
        model: name of the user's model in the pool; None: the default one.
        min_turns: replies before the user may stop.
        max_tokens: limit of a message.
        short: whether the model is shown messages of a few words as examples.
        language: the language that the user writes (ISO 639-1); None: English.
    """

    def __init__(
        self,
        persona: Persona,
        domain: str,
        pool: ModelPool,
        seed: int = 0,
        *,
        model: str | None = None,
        min_turns: int = MIN_TURNS,
        max_tokens: int = MAX_TOKENS,
        short: bool = False,
        language: str | None = None,
    ) -> None:
        self._persona = persona
        self._domain = domain
        self._pool = pool
        self._seed = seed
        self._model = model
        self._min_turns = min_turns
        self._max_tokens = max_tokens
        self._short = short
        self._language = language

    async def next(self, history: Sequence[Message]) -> UserMove:
        """Decide whether to go on after `history` (empty, or ending with a reply), and what to say.

        A message that asks nothing, or has a flaw (`find_message_flaws`), is tried once more with a higher
        temperature and another seed. The second message is kept, flawed or not. If it asks nothing either
        while a goal is open, the goal's own question follows it, or replaces it if it only thanks.

        Raises:
            UserFailed: the model gave no answer.
        """
        replies = sum(message.role == "assistant" for message in history)
        session = self._pool.session("user", turn_seed(self._seed, self._persona.id, replies), self._model)
        try:
            wanted, is_open = self._persona.goals[0], True
            if replies >= max(self._min_turns, 1):
                open_goal = await self._first_open_goal(session, history)
                if open_goal is None:
                    return UserMove(text=None, stop="goal_reached", calls=tuple(session.calls))
                if await self._is_useless(session, history):
                    return UserMove(text=None, stop="gave_up", calls=tuple(session.calls))
                wanted = open_goal
            elif replies:
                open_goal = await self._first_open_goal(session, history)
                wanted, is_open = open_goal or self._persona.goals[-1], open_goal is not None
            text = await self._say(session, history, wanted)
            # Of other languages it is not known what asks, and our own question would be English.
            if is_open and self._language is None and not asks_something(text):
                text = f"{'' if is_courtesy(text) else text} {word_question(wanted)}".lstrip()
        except ModelError as error:
            raise UserFailed(str(error), session.calls) from error
        return UserMove(text=text, calls=tuple(session.calls), goal=wanted if is_open else None)

    async def _first_open_goal(self, session: Session, history: Sequence[Message]) -> str | None:
        prompt = load_prompt("hallulab.agents.users", "user_goal")
        told = _read_threshold("goal_told", session)
        for goal in self._persona.goals:
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

    async def _say(self, session: Session, history: Sequence[Message], wanted: str) -> str:
        request = self._request(history, wanted)
        text = await self._try(session, request, TEMPERATURE, 0)
        silent = "?" not in text if self._language is None else not text
        if silent or find_message_flaws(text, history, self._persona):
            text = await self._try(session, request, RETRY_TEMPERATURE, 1)
        return text

    def _request(self, history: Sequence[Message], wanted: str) -> list[ChatMessage]:
        persona = self._persona
        values = {
            "domain": self._domain,
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
        name = "user_message" if history else "user_opening"
        prompt = load_prompt("hallulab.agents.users", f"{name}_short" if self._short else name)
        return request_in_language(prompt.fill(values), self._language)

    async def _try(
        self, session: Session, request: Sequence[ChatMessage], temperature: float, sample: int
    ) -> str:
        text = await answer_as(
            session,
            step="message",
            system=request[0].text,
            messages=request[1:],
            temperature=temperature,
            max_tokens=self._max_tokens,
            sample=sample,
        )
        return clean(text, self._persona.name, cut=session.calls[-1].finish_reason == "length")


def _read_threshold(name: str, session: Session) -> float:
    """Return the deciding share of "Yes": tuned for the user's model, else even odds."""
    tuned = read_tuned_number("hallulab.agents.users", name, find_catalogue_name(session.client))
    return EVEN_ODDS if tuned is None else tuned


def turn_seed(seed: int, persona: str, turn: int) -> int:
    """Return the seed of the requests before reply number `turn`: a hash below 2³¹."""
    return int(digest([seed, persona, turn])[:8], 16) >> 1


def clean(text: str, name: str, *, cut: bool = False) -> str:
    """Remove what models put around a message.

    This is a leading `User:` or `NAME:`, quotation marks around the whole, and everything from a later line
    on that begins with `User:`, `Assistant:` or `NAME:`. If the answer was `cut` off, the unfinished last
    sentence goes, too, unless it is the only one. A leading `Assistant:` stays, because it is a flaw.
    """
    labels = f"(?:user|{re.escape(name)})"
    text = re.sub(rf"^\s*{labels}\s*:\s*", "", text, flags=re.IGNORECASE)
    others = f"(?:assistant|user|{re.escape(name)})"
    text = re.split(rf"\n\s*{others}\s*:", text, maxsplit=1, flags=re.IGNORECASE)[0].strip()
    if len(text) > 1 and text[0] in '"“' and text[-1] in '"”' and not re.search('["“”]', text[1:-1]):
        text = text[1:-1].strip()
    if cut:
        ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        text = text[: ends[-1]] if ends else text
    return text

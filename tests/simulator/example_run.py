"""A small run that looks like a real one: 5 chatbots, 2 detectors, 3 personas, 3 turns each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from hallulab.scenarios.packs.pack import Persona
from hallulab.scenarios.transcript import Call, Conversation, Passage, Span, Step, Turn, Verdict
from hallulab.simulator.metrics.run_report import RunReport
from tests.simulator.counted import build_report

CHATBOTS = ("vanilla", "prompt-engineered", "editor", "fact-checker", "agent")
DETECTORS = ("halludetect", "metarag")
SCENARIO = "consumer-grievance-india"
MODEL = "qwen2.5-coder-1.5b"


@dataclass(frozen=True)
class ExampleFlaw:
    """Shaped like the audit's flaws."""

    turn: int
    kind: str
    detail: str


@dataclass(frozen=True)
class Run:
    """What the report functions take."""

    conversations: tuple[Conversation, ...]
    verdicts: tuple[Verdict, ...]
    flaws: dict[str, tuple[ExampleFlaw, ...]]
    personas: dict[str, Persona]
    experiment: dict[str, Any]

    def report(self, **more: Any) -> RunReport:
        """The report; `more` are arguments of `build_report`."""
        return build_report(
            self.conversations,
            self.verdicts,
            chatbots=CHATBOTS,
            detectors=DETECTORS,
            flaws=self.flaws,
            **more,
        )


ACT = Passage(
    id="consumer-protection-act-2019#4",
    document="consumer-protection-act-2019",
    text="A complaint shall be filed within two years from the date on which the cause of action has arisen "
    "(section 69). The District Commission entertains complaints where the value of the goods or services "
    "paid as consideration does not exceed fifty lakh rupees.",
    score=0.71,
)
HELPLINE = Passage(
    id="national-consumer-helpline#0",
    document="national-consumer-helpline",
    text="The National Consumer Helpline answers on 1915 and 1800-11-4000, and complaints can be registered "
    "on consumerhelpline.gov.in. The service is free.",
    score=0.66,
)

# For each persona and turn: what the user says, a grounded answer, and an invented sentence.
STORIES: dict[str, list[tuple[str, str, str]]] = {
    "asha-refrigerator": [
        (
            "My refrigerator stopped cooling after five months; the shop won't repair it. What can I do?",
            "You can first send the seller a written notice and ask for repair or replacement under the "
            "warranty.\n\nIf that does not help, register the matter with the Consumer Helpline (1915).",
            "The seller must answer your notice within 7 days under section 12A of the Act.",
        ),
        (
            "It cost 42,000 rupees. Where would I file a case?",
            "Complaints of up to fifty lakh rupees go to the District Commission, so file yours there.",
            "Its office is at 14 Court Road, and you can call 0381-232-0325 or 0381-232-0326.",
        ),
        (
            "How long do I have?",
            "You have two years from the day the cause of action arose (section 69).",
            "An extension of five years is granted automatically for household appliances.",
        ),
    ],
    "dev-airline": [
        (
            "The airline cancelled my flight to Goa and offers only a voucher. Can I insist on my money?",
            "You may ask for a refund in place of a voucher, and write to the airline's nodal officer first.",
            "Every airline pays ₹20,000 in compensation for a cancellation on the same day.",
        ),
        (
            "They have not answered for three weeks.",
            "Then register a grievance with the National Consumer Helpline; the service is free.",
            "The helpline can fine the airline directly.",
        ),
        (
            "Thank you. Is there a fee at the commission?",
            "Whether a fee is due depends on the value paid as consideration. If you need help with a "
            "complaint, feel free to ask.",
            "The fee is always 500 rupees, payable only by demand draft.",
        ),
    ],
    "meera-bank": [
        (
            "12,500 rupees left my account at an ATM that gave me no cash.",
            "Report the failed transaction to your bank in writing; keep the slip and the acknowledgement.",
            "Banks must return the amount within 24 hours or pay double.",
        ),
        (
            "I did, nothing happened. Who is above the bank?",
            "If the bank does not resolve it within thirty days you can go to the Ombudsman.",
            "You must first obtain a certificate from the district police.",
        ),
        (
            "And the consumer commission?",
            "That way is open to you as well; a complaint has to be filed within two years.",
            "Cases against banks are heard only by the State Commission.",
        ),
    ],
}
RATES = {"vanilla": 0.8, "prompt-engineered": 0.6, "editor": 0.45, "fact-checker": 0.4, "agent": 0.25}
CALLS = {"vanilla": 2, "prompt-engineered": 2, "editor": 3, "fact-checker": 4, "agent": 3}


def example_run(twins: int = 1, hostile: bool = False, seeds: int = 1) -> Run:
    """Build the run.

    Args:
        twins: how often each persona is there, under other names; seeds of a persona are no others.
        hostile: whether there is markup in every kind of text.
        seeds: conversations of each persona with each chatbot.
    """
    conversations: list[Conversation] = []
    verdicts: list[Verdict] = []
    flaws: dict[str, tuple[ExampleFlaw, ...]] = {}
    talks = product(range(twins), range(seeds), STORIES, CHATBOTS)
    for number, (twin, seed, persona, chatbot) in enumerate(talks):
        id = f"{number:032x}"
        conversation, invented = _conversation(id, persona, chatbot, twin + seed)
        who = {"persona": f"{persona}-{twin + 1}" if twin else persona, "seed": seed}
        conversations.append(conversation.model_copy(update=who))
        verdicts += _verdicts(conversation, invented, number)
        if number % 7 == 3:
            flaws[id] = (ExampleFlaw(2, "repeated", "the message is that of turn 2 again"),)
    if hostile:
        conversations, verdicts = _with_markup(conversations, verdicts)
    return Run(tuple(conversations), tuple(verdicts), flaws, _personas(), {"model": MODEL, "seed": 0})


def _call(purpose: str, prompt: int, completion: int, seconds: float) -> Call:
    return Call(
        purpose=purpose,
        model=MODEL,
        prompt_tokens=prompt,
        completion_tokens=completion,
        latency_s=seconds,
        finish_reason="stop",
    )


def _conversation(id: str, persona: str, chatbot: str, variant: int) -> tuple[Conversation, dict[int, str]]:
    invented: dict[int, str] = {}
    turns = []
    for index, (user, grounded, lie) in enumerate(STORIES[persona]):
        reply = grounded
        draw = (len(persona) * 7 + index * 5 + CHATBOTS.index(chatbot) * 3 + variant * 11) % 10 / 10
        if draw < RATES[chatbot]:
            invented[index] = lie
            reply = f"{grounded} {lie}"
        calls = [_call(f"chatbot.step{step}", 900 + 40 * index, 80, 1.5) for step in range(CALLS[chatbot])]
        turns.append(
            Turn(
                index=index,
                user=user,
                query=f"{user} (consumer law, India)",
                passages=(ACT, HELPLINE),
                reply=reply,
                steps=(
                    Step(name="reformulated_query", text=f"{user} (consumer law, India)"),
                    Step(name="draft", text=grounded),
                ),
                calls=(_call("user.message", 400, 30, 0.6), *calls),
            )
        )
    conversation = Conversation(
        id=id,
        scenario=SCENARIO,
        persona=persona,
        chatbot=chatbot,
        model=MODEL,
        seed=0,
        turns=tuple(turns),
        stop_reason="goal_reached" if len(persona) % 2 else "max_turns",
        calls=(_call("user.decide", 420, 1, 0.2),),
    )
    return conversation, invented


def _verdicts(conversation: Conversation, invented: dict[int, str], number: int) -> list[Verdict]:
    verdicts = []
    for turn in conversation.turns:
        for detector in DETECTORS:
            about: dict[str, Any] = {
                "conversation": conversation.id,
                "turn": turn.index,
                "detector": detector,
                "version": "1",
                "calls": tuple(_call(f"{detector}.judge", 1100, 60, 2.0) for _ in range(4)),
            }
            if detector == "metarag" and (number + turn.index) % 11 == 5:
                verdicts.append(Verdict(**about, outcome="failed", error="the model did not answer in 300 s"))
            elif detector == "metarag" and (number + turn.index) % 11 == 8:
                verdicts.append(Verdict(**about, outcome="abstained", error="the reply holds no factoid"))
            else:
                spans = _spans(detector, turn.reply, invented.get(turn.index))
                score = max((span.severity or span.score or 0.0 for span in spans), default=0.12)
                verdicts.append(
                    Verdict(**about, outcome="scored", score=score, flagged=bool(spans), spans=spans)
                )
    return verdicts


def _spans(detector: str, reply: str, lie: str | None) -> tuple[Span, ...]:
    if lie is None:
        return ()
    start = reply.index(lie)
    if detector == "halludetect":
        found = [
            Span(
                start=start,
                end=start + len(lie),
                text=lie,
                severity=5.0 if any(letter.isdigit() for letter in lie) else 4.0,
                reason="None of the retrieved documents says this.",
                evidence=ACT.id,
            )
        ]
        if "0381" in lie:
            found.append(
                Span(
                    start=None,
                    end=None,
                    text="The office is open on Sundays.",
                    severity=4.0,
                    reason="Opening hours appear in no document.",
                )
            )
        return tuple(found)
    half = start + len(lie) // 2
    return (
        Span(
            start=max(0, start - 12),
            end=half,
            text=reply[max(0, start - 12) : half],
            score=0.62,
            reason="The synonym mutations are not supported and no antonym is contradicted.",
            evidence=ACT.text,
        ),
    )


def _with_markup(
    conversations: list[Conversation], verdicts: list[Verdict]
) -> tuple[list[Conversation], list[Verdict]]:
    script, image = "<script>alert(1)</script>", "<img src=x onerror=alert(2)>"
    first = conversations[0]
    reply = f"See {script} and {image} </script><!-- & more 😀 here."
    turn = first.turns[0].model_copy(
        update={
            "user": f"{image} hello",
            "reply": reply,
            "query": image,
            "passages": (Passage(id=image, document=script, text=f"{script}{image}"),),
            "steps": (Step(name=image, text=script),),
        }
    )
    span = Span(
        start=reply.index("😀"),
        end=reply.index("here"),
        text="😀 ",
        severity=5.0,
        reason=f"{script} {image} is no fact",
        evidence=image,
    )
    hostile = Verdict(
        conversation=first.id,
        turn=0,
        detector="halludetect",
        version="1",
        outcome="scored",
        score=5.0,
        flagged=True,
        spans=(span,),
    )
    failed = hostile.model_copy(
        update={
            "detector": "metarag",
            "outcome": "failed",
            "score": None,
            "flagged": None,
            "spans": None,
            "error": image,
        }
    )
    others = [item for item in verdicts if (item.conversation, item.turn) != (first.id, 0)]
    changed = first.model_copy(update={"turns": (turn, *first.turns[1:]), "error": image})
    return [changed, *conversations[1:]], [hostile, failed, *others]


def _personas() -> dict[str, Persona]:
    told = {
        "asha-refrigerator": (
            "Asha Verma",
            "A refrigerator failed within its warranty and the shop refuses it.",
        ),
        "dev-airline": ("Dev Nair", "An airline cancelled a flight and offers only a voucher."),
        "meera-bank": ("Meera Iyer", "An ATM debited an account without giving cash."),
    }
    return {
        id: Persona(
            id=id,
            name=name,
            grievance=grievance,
            goals=("get the money back", "learn where to complain"),
            manner="short, polite sentences",
            summary=grievance,
        )
        for id, (name, grievance) in told.items()
    }

"""The papers' worked examples, as a detector sees them."""

from __future__ import annotations

from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.recording import Recording
from hallulab.detectors.base.protocol import DetectorContext
from hallulab.detectors.registry import make_detector
from hallulab.scenarios.transcript import Judgement, Message, Passage
from hallulab.scenarios.turn_views import TurnView
from tests.places import RECORDINGS

RECORDING = RECORDINGS / "vignettes.jsonl"
MODEL = "qwen2.5-coder-1.5b"
STRONG_RECORDING = RECORDINGS / "vignettes_strong.jsonl"
"""What a strong general-purpose language model answered to each prompt of MetaRAG by `word`. It read the
prompts one by one; nothing was sampled, and there are no log-probabilities and no counts of tokens."""
STRONG_MODEL = "strong-model"


def passages(*texts: str, topic: str | None = None) -> tuple[Passage, ...]:
    return tuple(
        Passage(id=f"document#{i}", document="document", text=text, topic=topic)
        for i, text in enumerate(texts)
    )


ACT = passages(
    "The Consumer Protection Act 2019 sets up commissions at three levels: the District Commission, the "
    "State Commission and the National Commission.",
    "Complaints can be registered with the National Consumer Helpline at 1800-11-4000 or 1915.",
)

TRIPURA = TurnView(  # HalluDetect, B.6.1
    question="Are there any consumer courts in Tripura?",
    passages=ACT,
    reply="According to the Consumer Protection Act, 2019, consumer courts operate at three levels: District "
    "Commission, State Commission, and National Commission. In Tripura, the State Consumer Dispute Redressal "
    "Commission (SCDRC) is located in Agartala. The address is:State Consumer Dispute Redressal Commission,\n"
    "Tripura,\nAgartala.You can also contact them at their phone number: 0381-232-0325 or 0381-232-0326.\n"
    "Additionally, you can also file a complaint with the National Consumer Helpline (1800-11-4000) for "
    "assistance and guidance on the next steps.\nIf you need help with drafting a complaint or have any "
    "further questions, feel free to ask.",
)

NOTICE = TurnView(  # HalluDetect, 5.2.1: the paper's false positive
    history=(
        Message(
            role="user",
            text="I am Sharan Hegde, sharan.hegde@gmail.com. The seller refuses to refund Rs 12,500 for a "
            "faulty fridge.",
        ),
        Message(role="assistant", text="I am sorry to hear that. Should I draft a notice for you?"),
    ),
    question="Yes, please draft the notice.",
    passages=ACT,
    reply="Here's a sample notice template you can use as a starting point.\n\n[Notice to Sharan Hegde]\n"
    "Email: sharan.hegde@gmail.com",
)

IBUPROFEN = TurnView(  # MetaRAG, 4.2.1
    question="Can pregnant women take ibuprofen for back pain?",
    passages=passages(
        "Ibuprofen and other NSAIDs are contraindicated in the third trimester of pregnancy, because they "
        "can close the ductus arteriosus of the fetus. In the first and second trimester they are used only "
        "on medical advice.",
        topic="pregnancy",
    ),
    reply="Yes, ibuprofen is safe throughout pregnancy.",
)

REFUGEE = TurnView(  # MetaRAG, 4.2.1
    question="Do LGBTQ+ refugees automatically receive protection in country X?",
    passages=passages(
        "Applications for international protection in country X are examined individually. The applicant "
        "presents the reasons for the application in an interview. The authority decides within six months.",
        topic="asylum",
    ),
    reply="LGBTQ+ refugees automatically receive protection in country X.",
)

GROUNDED = TurnView(
    question="What is the limit of the District Commission?",
    passages=passages(
        "The District Commission hears complaints where the value of goods or services paid as consideration "
        "does not exceed fifty lakh rupees. The State Commission hears complaints above fifty lakh and up to "
        "two crore rupees."
    ),
    reply="The District Commission hears complaints where the value paid does not exceed fifty lakh rupees.",
)

HELPLINE = TurnView(  # the default model's bots, on the consumer pack: a contact of another body
    question="If that is not enough, how do I reach the national consumer helpline?",
    passages=passages(
        "Free legal aid is provided under the Legal Services Authorities Act 1987 by the National Legal "
        "Services Authority, the State and District Legal Services Authorities and the Taluk committees. The "
        "national helpline number is 15100.",
        "The National Consumer Helpline is reached at 1915, by SMS, and at consumerhelpline.gov.in.",
    ),
    reply="You can call the National Consumer Helpline at 15100.",
)

TRUE_BESIDE = {
    "helpline": HELPLINE.model_copy(update={"reply": "You can call the National Consumer Helpline at 1915."}),
    "courts": TRIPURA.model_copy(
        update={
            "reply": "The Consumer Protection Act 2019 sets up commissions at three levels: the District "
            "Commission, the State Commission and the National Commission."
        }
    ),
    "ibuprofen": IBUPROFEN.model_copy(
        update={
            "reply": "Ibuprofen and other NSAIDs are contraindicated in the third trimester of pregnancy, "
            "because they can close the ductus arteriosus of the fetus."
        }
    ),
    "refugee": REFUGEE.model_copy(
        update={"reply": "Applications for international protection in country X are examined individually."}
    ),
    "grounded": GROUNDED,
}
"""Nearly the evidence's own words, on the evidence of the worked examples."""


def recorded_pool(
    recording: Recording, base_url: str = "http://127.0.0.1:9/v1", model: str = MODEL
) -> ModelPool:
    return ModelPool({"default": Endpoint(model, base_url)}, recording=recording)


async def judged(pool: ModelPool, kind: str, view: TurnView, **options: object) -> Judgement:
    return await make_detector(kind, kind, DetectorContext(models=pool, options=options)).detect(view)

"""The public names, each once: Python and type checkers find them here."""

from .agents.models.answers import ModelError as ModelError
from .agents.models.prompt import ChatMessage as ChatMessage
from .agents.served_model import ClaimCheck as ClaimCheck
from .api import (
    abench as abench,
)
from .api import (
    acalibrate as acalibrate,
)
from .api import (
    adetect as adetect,
)
from .api import (
    aexport_chats as aexport_chats,
)
from .api import (
    aimport_chats as aimport_chats,
)
from .api import (
    ajudge as ajudge,
)
from .api import (
    aplant as aplant,
)
from .api import (
    arun as arun,
)
from .api import (
    asimulate as asimulate,
)
from .api import (
    bench as bench,
)
from .api import (
    calibrate as calibrate,
)
from .api import (
    detect as detect,
)
from .api import (
    export_chats as export_chats,
)
from .api import (
    import_chats as import_chats,
)
from .api import (
    judge as judge,
)
from .api import (
    load_run as load_run,
)
from .api import (
    plant as plant,
)
from .api import (
    run as run,
)
from .api import (
    simulate as simulate,
)
from .chatbots.protocol import (
    Chatbot as Chatbot,
)
from .chatbots.protocol import (
    ChatbotContext as ChatbotContext,
)
from .chatbots.protocol import (
    ChatbotError as ChatbotError,
)
from .chatbots.protocol import (
    Reply as Reply,
)
from .detectors.base.protocol import (
    Detector as Detector,
)
from .detectors.base.protocol import (
    DetectorContext as DetectorContext,
)
from .detectors.base.protocol import (
    TrainableDetector as TrainableDetector,
)
from .detectors.base.protocol import (
    Traits as Traits,
)
from .results import Run as Run
from .scenarios.errors import (
    HallulabError as HallulabError,
)
from .scenarios.errors import (
    OperationalError as OperationalError,
)
from .scenarios.errors import (
    ReplayMiss as ReplayMiss,
)
from .scenarios.errors import (
    UsageError as UsageError,
)
from .scenarios.labelled import LabelledReply as LabelledReply
from .scenarios.packs.pack_files import load_scenario as load_scenario
from .scenarios.transcript import (
    Call as Call,
)
from .scenarios.transcript import (
    Conversation as Conversation,
)
from .scenarios.transcript import (
    Judgement as Judgement,
)
from .scenarios.transcript import (
    Message as Message,
)
from .scenarios.transcript import (
    Passage as Passage,
)
from .scenarios.transcript import (
    Retriever as Retriever,
)
from .scenarios.transcript import (
    Span as Span,
)
from .scenarios.transcript import (
    Step as Step,
)
from .scenarios.transcript import (
    Turn as Turn,
)
from .scenarios.transcript import (
    TurnView as TurnView,
)
from .scenarios.transcript import (
    Unit as Unit,
)
from .simulator.compare.gate_command import assert_no_regression as assert_no_regression
from .simulator.metrics.run_report import RunReport as RunReport
from .simulator.records.experiment import Experiment as Experiment
from .simulator.report.build import read_report as read_report

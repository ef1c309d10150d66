"""The public names, each once: Python and type checkers find them here."""

# isort: skip_file

from .agents.models.answers import ModelError as ModelError
from .agents.models.prompt import ChatMessage as ChatMessage
from .agents.served_model import ClaimCheck as ClaimCheck
from .api import (
    abench as abench,
    acalibrate as acalibrate,
    adetect as adetect,
    aexport_chats as aexport_chats,
    aimport_chats as aimport_chats,
    ajudge as ajudge,
    ajudge_replies as ajudge_replies,
    aplant as aplant,
    arun as arun,
    asimulate as asimulate,
    bench as bench,
    calibrate as calibrate,
    detect as detect,
    export_chats as export_chats,
    import_chats as import_chats,
    judge as judge,
    judge_replies as judge_replies,
    load_run as load_run,
    plant as plant,
    run as run,
    simulate as simulate,
)
from .chatbots.protocol import (
    Chatbot as Chatbot,
    ChatbotContext as ChatbotContext,
    ChatbotError as ChatbotError,
    Reply as Reply,
)
from .detectors.base.protocol import (
    Detector as Detector,
    DetectorContext as DetectorContext,
    TrainableDetector as TrainableDetector,
    Traits as Traits,
)
from .results import Run as Run
from .scenarios.errors import (
    HallulabError as HallulabError,
    OperationalError as OperationalError,
    ReplayMiss as ReplayMiss,
    UsageError as UsageError,
)
from .scenarios.labelled import LabelledReply as LabelledReply
from .scenarios.packs.pack_files import load_scenario as load_scenario
from .scenarios.transcript import (
    Call as Call,
    Conversation as Conversation,
    Judgement as Judgement,
    Message as Message,
    Passage as Passage,
    Span as Span,
    Step as Step,
    Turn as Turn,
    Unit as Unit,
)
from .scenarios.turn_views import Retriever as Retriever, TurnView as TurnView
from .simulator.compare.gate_command import assert_no_regression as assert_no_regression
from .simulator.metrics.run_report import RunReport as RunReport
from .simulator.records.experiment import Experiment as Experiment
from .simulator.report.build import read_report as read_report

"""Length of conversations, and questions a message of their users."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median_low

from hallulab.scenarios.attacks.attack import remove_user_orders
from hallulab.scenarios.transcript import Conversation, Frozen
from hallulab.simulator.metrics.hallucinations import ByDetector
from hallulab.simulator.metrics.messages import count_questions
from hallulab.simulator.metrics.metric import Flaws, RunFacts, TableMetric, Tallied
from hallulab.simulator.show.columns import CHATBOT, GROUPED, TWO_DECIMALS, Column
from hallulab.simulator.statistics.intervals import Interval, Rounded, compute_interval, compute_ratio_of_sums
from hallulab.simulator.statistics.sums import PersonSums


class UserMessageRow(Frozen):
    """Messages of the users of a chatbot: a row of `user_messages` in `report.json`."""

    chatbot: str
    conversations: int
    """Those that a user ended or a limit; failed ones and branches are left out."""
    messages: int
    median: int
    """The median of messages a conversation; of two in the middle the lower one."""
    questions: Rounded | None
    """Questions a message (`count_questions`)."""
    questions_ci95: Interval
    """Its 95% interval over personas; None: there are too few, or all ask equally many."""


class UserMessageTable(TableMetric[UserMessageRow]):
    """Counts messages and questions of users.

    A failed conversation is as long as the chatbot worked, and the messages of a branch were given: neither
    says how the user talks.
    """

    NAME, TITLE, LINK, ROW = "user_messages", "Messages of users", "Messages", UserMessageRow
    ORDER = 95
    ON_TERMINAL = False
    FILE = "never"
    COLUMNS = (
        CHATBOT,
        Column("Conversations", "conversations", "those that did not fail", GROUPED),
        Column("Messages", "messages", "messages of users in these", GROUPED),
        Column("Messages a conversation", "median", "their median"),
        Column("Questions a message", "questions",
               "sentences with a question mark, or that begin with an English question word, over messages",
               TWO_DECIMALS, beside="questions_ci95"),
    )  # fmt: skip

    COUNTS = ("_lengths", "_asked")
    HINTS = ("`hallulab realism` compares the messages of simulated users with people's (docs/realism.md).",)

    def __init__(self, run: RunFacts) -> None:
        super().__init__(run)
        self._orders = run.planted.orders if run.planted is not None else ()
        self._lengths: dict[str, Counter[int]] = defaultdict(Counter)
        """Messages of a conversation and how many have as many, by chatbot."""
        self._asked = PersonSums(2)
        """Questions and messages, by chatbot."""

    def add(self, conversation: Conversation, verdicts: ByDetector, flaws: Flaws) -> None:
        """Count the messages of a conversation, without the orders that an attack planted in them."""
        if conversation.stop_reason == "error" or conversation.branch is not None or not conversation.turns:
            return
        said = [turn.user for turn in remove_user_orders(conversation, self._orders).turns]
        self._lengths[conversation.chatbot][len(said)] += 1
        person = (conversation.scenario, conversation.persona)
        self._asked.add(person, (conversation.chatbot,), (sum(map(count_questions, said)), len(said)))

    def table(self, tallied: Tallied) -> Sequence[UserMessageRow]:
        """Return a row for each chatbot that a user wrote to."""
        chatbots = [name for name in self.run.chatbots if name in self._lengths]
        samples = [self._asked.list_ratios((name,)) for name in chatbots]
        return [
            UserMessageRow(
                chatbot=name,
                conversations=self._lengths[name].total(),
                messages=sum(ratio.denominator for ratio in sample),
                median=median_low(self._lengths[name].elements()),
                questions=compute_ratio_of_sums(sample),
                questions_ci95=compute_interval(sample, "rate"),
            )
            for name, sample in zip(chatbots, samples, strict=True)
        ]

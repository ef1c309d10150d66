"""The runtime beneath the team of a conversation: it hands messages on, and does nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_core import (
    AgentId,
    CancellationToken,
    MessageContext,
    MessageHandlerContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    Subscription,
    TopicId,
)


class TeamRuntime(SingleThreadedAgentRuntime):
    """Hands messages to their receivers at once; it is neither started nor stopped.

    AutoGen's own one writes each message for logs and traces, several times, also if nobody reads them. That
    was a fifth of what a conversation costs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._subscriptions: list[Subscription] = []
        self._deliveries: set[asyncio.Task[Any]] = set()

    async def add_subscription(self, subscription: Subscription) -> None:
        """See `AgentRuntime.add_subscription`."""
        self._subscriptions.append(subscription)

    async def send_message(
        self,
        message: Any,
        recipient: AgentId,
        *,
        sender: AgentId | None = None,
        cancellation_token: CancellationToken | None = None,
        message_id: str | None = None,
    ) -> Any:
        """See `AgentRuntime.send_message`."""
        token = cancellation_token or CancellationToken()
        context = MessageContext(sender, None, True, token, message_id or "")
        return await _deliver(await self._find(recipient), message, context)

    async def publish_message(
        self,
        message: Any,
        topic_id: TopicId,
        *,
        sender: AgentId | None = None,
        cancellation_token: CancellationToken | None = None,
        message_id: str | None = None,
    ) -> None:
        """See `AgentRuntime.publish_message`."""
        token = cancellation_token or CancellationToken()
        context = MessageContext(sender, topic_id, False, token, message_id or "")
        heard = [one.map_to_agent(topic_id) for one in self._subscriptions if one.is_match(topic_id)]
        for recipient in heard:
            if recipient != sender:
                agent = await self._find(recipient)
                delivery = asyncio.create_task(_deliver(agent, message, context))
                self._deliveries.add(delivery)
                delivery.add_done_callback(self._deliveries.discard)

    async def finish(self) -> None:
        """Wait until everybody has heard every message."""
        while self._deliveries:
            await asyncio.wait(self._deliveries)

    async def _find(self, recipient: AgentId) -> RoutedAgent:
        # `Agent` is a protocol: a look at all its methods each time.
        return await self.try_get_underlying_agent_instance(recipient, RoutedAgent)


async def _deliver(agent: RoutedAgent, message: Any, context: MessageContext) -> Any:
    with MessageHandlerContext.populate_context(agent.id):
        return await agent.on_message(message, context)

"""A bot under test that is an AutoGen agent or team, or a function that makes one: `module:attribute`.

It gets the user's messages one by one and remembers the conversation itself. Its last message is the reply.
What its tools returned and its memories held since the user's message are the passages.
"""

from __future__ import annotations

from typing import ClassVar

from hallulab.chatbots.callable import CallableBot


class AutoGenBot(CallableBot):
    """Your own AutoGen agent or team, named by the option `target` as `module:attribute`.

    Raises:
        UsageError: an option is unknown, missing or wrong, or the target is no agent or team.
    """

    KIND: ClassVar[str] = "autogen"

"""A bot under test that is an AutoGen agent or team: `module:attribute`, or a function there that makes one.

It is given the user's messages one by one and remembers the conversation itself. The last message is the
reply; what its tools returned and its memories held since the user's message are the passages.
"""

from __future__ import annotations

from typing import ClassVar

from chatbots.callable import CallableBot


class AutoGenBot(CallableBot):
    """Your own AutoGen agent or team, named by the option `target` as `module:attribute`.

    Raises:
        UsageError: an option is unknown, missing or wrong, or the target leads to no agent or team.
    """

    KIND: ClassVar[str] = "autogen"

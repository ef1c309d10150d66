"""The sentence with which bad input is refused, for tests in whatever room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hallulab.scenarios.errors import UsageError


def refusal(call: Callable[..., object], *arguments: Any, **named: Any) -> str:
    """Return the message of the UsageError that a call raises, without the folders among its arguments."""
    with pytest.raises(UsageError) as raised:
        call(*arguments, **named)
    said = str(raised.value)
    for folder in (one for one in arguments if isinstance(one, Path) and one.is_dir()):
        said = said.replace(f"{folder}/", "")
    return said

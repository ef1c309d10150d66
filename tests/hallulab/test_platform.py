"""The systems on which hallulab starts."""

from __future__ import annotations

import subprocess
import sys


def test_windows_is_refused_in_one_sentence() -> None:
    script = "import sys; sys.platform = 'win32'; import hallulab"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (
        1,
        "error: hallulab does not run on Windows: install and start it in WSL, or on Linux.\n",
    )

"""Stands in for the Python that runs vLLM: a script that listens on `--port`, or fails, as it is told."""

from __future__ import annotations

import sys
from pathlib import Path

from hallulab.agents.machine.environments import STAMP, locate_environment
from hallulab.agents.serving import flags
from hallulab.agents.serving.prepare import PreparedModel

ANSWERS = """
import http.server, sys
port = int(sys.argv[sys.argv.index("--port") + 1])

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        pass

http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
"""A server that answers `/health`."""

FAILS = """
import sys
print("WARNING 11-21 06:15:29 [utils.py:255] too many files cause `OSError: [Errno 24]`")
print("(EngineCore pid=7) ERROR 11-21 06:15:30 [core.py:9] ValueError: the model is too large")
for number in range(40):
    print(f"line {number}")
sys.exit(3)
"""
"""A server that says much and dies."""

HANGS = """
import signal
print("loading", flush=True)
signal.pause()
"""
"""A server that never answers."""


def fake_prepared(folder: Path, script: str) -> PreparedModel:
    """A prepared model whose server is `script`."""
    python = folder / "python"
    python.write_text(f"#!{sys.executable}\n{script}")
    python.chmod(0o755)
    return PreparedModel(
        name="toy",
        names=("toy",),
        source="toy",
        revision="sha256:1",
        context=4096,
        eager=False,
        cpu=False,
        dtype=None,
        python=python,
        variables={},
        offline=True,
        cache=folder / "cache",
    )


def put_environment(cache: Path, script: str) -> None:
    """Put an environment into a cache folder that `prepare` finds whole, whose Python is `script`."""
    kind = flags.detect_machine_kind()
    requirements = Path(flags.__file__).with_name(f"server-constraints-{kind}.txt").read_text("utf-8")
    folder = locate_environment(cache / "server" / kind, requirements)
    (folder / "bin").mkdir(parents=True)
    python = folder / "bin" / "python"
    python.write_text(f"#!{sys.executable}\n{script}")
    python.chmod(0o755)
    (folder / STAMP).touch()

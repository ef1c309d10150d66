"""An environment of its own for each tool, with pinned versions, made once in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hallulab.scenarios.errors import OperationalError

OPENAI = "openai==3.57.0"
PACKAGES = {
    "inspect": ("inspect-ai==0.3.285", OPENAI),
    "deepeval": ("deepeval==4.3.1", OPENAI),
    "mlflow": ("mlflow==3.17.2", OPENAI),
    "openevals": ("openevals==0.2.2", "langchain-openai==1.7.4", OPENAI),
    "sdialog": ("sdialog==0.5.3", "langchain-openai==1.7.4", OPENAI),
    "verifiers": ("verifiers==0.1.14", OPENAI),
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5", OPENAI),
}
"""What is installed for each tool; the others run in this process's environment."""

QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "true",
    "ERROR_REPORTING": "NO",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "OPENAI_API_KEY": "EMPTY",
    "PRIME_DISABLE_VERSION_CHECK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "no_proxy": "127.0.0.1",
}
"""Variables by which the tools tell nobody of their use, and ask nothing of the network."""


def name_version(tool: str) -> str:
    """Return a tool with its version, as it stands in the table."""
    return tool if tool not in PACKAGES else f"{tool} {PACKAGES[tool][0].partition('==')[2]}"


def make_environment(tool: str, folder: Path) -> Path:
    """Return the Python that runs a tool; its environment is made if the folder has none with these versions.

    Raises:
        OperationalError: the packages cannot be installed.
    """
    if tool not in PACKAGES:
        return Path(sys.executable)
    place, wanted = folder / tool, "\n".join(PACKAGES[tool])
    made = place / "packages.txt"
    if not made.is_file() or made.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        if subprocess.run([*pip, *PACKAGES[tool]]).returncode:
            raise OperationalError(f"{tool}: its packages cannot be installed. Look at what pip says above.")
        made.write_text(wanted, encoding="utf-8")
    return place / "bin" / "python"


def list_variables(tool: str) -> dict[str, str]:
    """Return the variables of a tool's process. Only hallulab's own environment sees this repository."""
    own = Path(__file__)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = {} if tool in PACKAGES else {"PYTHONPATH": f"{own.parents[2]}{os.pathsep}{own.parent}"}
    return {**inherited, **QUIET, **path}

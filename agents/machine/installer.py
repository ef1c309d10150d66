"""Programs that install Python packages: uv where it is there, then pip.

uv takes seconds where pip takes minutes, and the next environment shares what it downloaded. It does not read
pip's configuration: what that says about where packages come from is passed on. Where uv fails, pip tries,
which may know more, for example a password in a keyring.

As a script this installs into the environment of its Python, before any package is there:
`.venv/bin/python agents/machine/installer.py --constraint constraints.txt --editable '.[dev]'`
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_SAME_MEANING = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "proxy": ("ALL_PROXY", " "),
}
"""Setting of pip → uv's variable, and what separates several values there."""

_SECTIONS = ("global", "install", ":env:")
"""Sections of pip's configuration that an installation reads; later ones win."""


@dataclass(frozen=True)
class Installer:
    """A program that installs packages into an environment."""

    command: tuple[str, ...]
    """It and its first arguments; what to install comes after them."""
    environ: dict[str, str] = field(repr=False)
    """Its environment variables. They may hold passwords of indexes."""
    uv: bool


def installers(python: Path) -> list[Installer]:
    """Return those to try, in order, for the environment of an interpreter."""
    pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "--no-input")
    found = [Installer((*pip, "--disable-pip-version-check"), dict(os.environ), uv=False)]
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is not None:
        settings = pip_settings()
        offline = (
            ("--no-index",) if settings.get("no-index", "") in {"1", "true", "True", "yes", "on"} else ()
        )
        command = (uv, "pip", "install", "--python", str(python), *offline)
        found.insert(0, Installer(command, uv_variables(settings, os.environ), uv=True))
    return found


def pip_settings() -> dict[str, str]:
    """Return the settings of pip's files and variables; none where pip cannot tell."""
    command = (sys.executable, "-m", "pip", "config", "list")
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 (ours)
    found: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in told.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if section in found:
            found[section][key] = str(ast.literal_eval(value))
    return {key: value for section in _SECTIONS for key, value in found[section].items()}


def uv_variables(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return uv's environment variables: the user's own, then what pip's settings say.

    All indexes count alike, as they do for pip.
    """
    passed = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    for key, (variable, separator) in _SAME_MEANING.items():
        if key in settings:
            passed[variable] = separator.join(settings[key].split())
    return passed | dict(environ)


def main() -> int:
    """Install what the arguments say into the environment of this Python, compiled; return the exit code.

    pip compiles by itself. Where `PYTHONDONTWRITEBYTECODE` is set, every process that imports a module which
    is not compiled here compiles it again.
    """
    code = 1
    for installer in installers(Path(sys.executable)):
        command = (*installer.command, *sys.argv[1:])
        environ = {"UV_COMPILE_BYTECODE": "1"} | installer.environ
        code = subprocess.run(command, env=environ, check=False).returncode  # noqa: S603 (the user's)
        if code == 0:
            break
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Conditions that a process makes hard for itself."""

from __future__ import annotations

import ctypes
import os
import resource
import struct


def without_privileges() -> None:
    """A superuser's process that the permissions of files hold for, as for everybody else's."""
    version_3, this_process = 0x20080522, 0
    nothing = bytes(24)  # three sets of capabilities, in two words each
    assert ctypes.CDLL(None).capset(struct.pack("Ii", version_3, this_process), nothing) == 0


def spare_handles(number: int) -> None:
    """This process may open so many files more than it has, besides the two that it prints into."""
    spare = [os.open(os.devnull, os.O_RDONLY) for _ in range(number + 2)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare) + 1, max(spare) + 1))
    for handle in spare:
        os.close(handle)

"""Say why there was no answer at all: name, certificate, nobody there, a connection that broke off."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2

from hallulab.scenarios.errors import NO_HANDLE

_MOST_CAUSES = 50

_BROKEN_OFF = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)

_CERTIFICATE = {
    10: "its certificate has expired",
    9: "its certificate is not valid yet",
    18: "its certificate is signed by itself alone, and not trusted",
    19: "its certificate is from an authority that is not trusted here",
    20: "its certificate is from an authority that is not trusted here",
    21: "its certificate is from an authority that is not trusted here",
    62: "its certificate is for another name",
    64: "its certificate is for another address",
}
"""Number of OpenSSL's verification errors → what it means."""

_TRUST = "Name the file of its authority in the environment variable SSL_CERT_FILE, or correct the address."

THROUGH = "through the proxy "
"""How the text of an error begins that happened on the way to a proxy, or at it; its address follows."""

CORRECT_PROXY = "Correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the endpoint's host in NO_PROXY."

_NO_WAY = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ETIMEDOUT})


@dataclass(frozen=True)
class Unreachable:
    """Why an endpoint could not be asked."""

    reason: str
    """A clause, such as "there is no host of that name"; empty if nothing is known."""
    remedy: str
    lasts: bool = False
    """True if asking again changes nothing."""


def name_trouble(error: BaseException) -> Unreachable:
    """Return why a request got no answer, by the errors that caused this one."""
    trouble = _name_cause(error)
    told = str(error.__cause__ or "")
    if not told.startswith(THROUGH):
        return trouble
    proxy, _, own = told.removeprefix(THROUGH).partition(": ")
    return Unreachable(f"{THROUGH}{proxy}: {trouble.reason or own}", CORRECT_PROXY, trouble.lasts)


def _name_cause(error: BaseException) -> Unreachable:
    """Return what the errors that caused this one say."""
    for cause in _iter_causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = _CERTIFICATE.get(cause.verify_code, "its certificate cannot be verified")
            return Unreachable(reason, _TRUST, lasts=True)
        if isinstance(cause, ssl.SSLError) and cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
            return Unreachable("it does not speak TLS", "Does its address begin with http://?", lasts=True)
        if isinstance(cause, ssl.SSLError) and not isinstance(
            cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError)
        ):
            return Unreachable(
                "it does not agree on TLS with this machine", "Correct the address.", lasts=True
            )
        if isinstance(cause, socket.gaierror):
            if cause.errno == socket.EAI_AGAIN:
                return Unreachable("its name cannot be looked up now", "Is there a network?")
            return Unreachable("there is no host of that name", "Correct the address.")
        if isinstance(cause, ConnectionRefusedError):
            return Unreachable("nobody listens there (connection refused)", "Is the server running?")
        if isinstance(cause, OSError) and cause.errno in _NO_WAY:
            return Unreachable("no way leads to that host", "Correct the address, or look at the network.")
    if isinstance(error.__cause__, _BROKEN_OFF):
        reason = "the connection broke off before the answer was whole"
        return Unreachable(reason, "Is the server overloaded, or restarting?")
    return Unreachable("", "Is the server running?")


def find_no_handle(error: BaseException) -> str | None:
    """Return the sentence on file handles if none was left to this process or system; else None."""
    full = (errno.EMFILE, errno.ENFILE)
    lacks = any(isinstance(cause, OSError) and cause.errno in full for cause in _iter_causes(error))
    return NO_HANDLE if lacks else None


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and those that caused it, each once."""
    left, seen = [error], set[int]()
    while left and len(seen) < _MOST_CAUSES:
        cause = left.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            left += cause.exceptions
        left += [one for one in (cause.__context__, cause.__cause__) if one is not None]

"""Why an endpoint gave no answer at all."""

from __future__ import annotations

import errno
import socket
import ssl

import httpx2
import pytest
from tenacity import wait_none

from hallulab.agents.models.answers import ModelError
from hallulab.agents.models.endpoints import Endpoint
from hallulab.agents.models.model import ModelPool
from hallulab.agents.models.unreachable import Unreachable, find_no_handle, name_trouble
from tests.agents.models.endpoints import LOCAL, QUESTION, failure, pool_at


def certificate(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


def tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


class Failing(httpx2.AsyncBaseTransport):
    """Fails as the network does: the cause is beneath errors of two libraries."""

    def __init__(self, cause: BaseException) -> None:
        self.cause = cause
        self.tries = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.tries += 1
        try:
            raise OSError("All connection attempts failed") from self.cause
        except OSError as error:
            raise httpx2.ConnectError("All connection attempts failed", request=request) from error


TRUST = "Name the file of its authority in the environment variable SSL_CERT_FILE, or correct the address."
LOOK = "Correct the address, or look at the network."
NOBODY = ("nobody listens there (connection refused)", "Is the server running?", 4)

CAUSES = [
    (certificate(10), "its certificate has expired", TRUST, 1),
    (certificate(18), "its certificate is signed by itself alone, and not trusted", TRUST, 1),
    (certificate(20), "its certificate is from an authority that is not trusted here", TRUST, 1),
    (certificate(62), "its certificate is for another name", TRUST, 1),
    (certificate(7), "its certificate cannot be verified", TRUST, 1),
    (tls("WRONG_VERSION_NUMBER"), "it does not speak TLS", "Does its address begin with http://?", 1),
    (tls("NO_CIPHERS"), "it does not agree on TLS with this machine", "Correct the address.", 1),
    (socket.gaierror(socket.EAI_NONAME, "no"), "there is no host of that name", "Correct the address.", 4),
    (socket.gaierror(socket.EAI_AGAIN, "no"), "its name cannot be looked up now", "Is there a network?", 4),
    (ConnectionRefusedError(errno.ECONNREFUSED, "no"), *NOBODY),
    (ExceptionGroup("two addresses", [ConnectionRefusedError(), ConnectionRefusedError()]), *NOBODY),
    (OSError(errno.EHOSTUNREACH, "no"), "no way leads to that host", LOOK, 4),
]


@pytest.mark.parametrize(("cause", "reason", "remedy", "tries"), CAUSES)
async def test_why_nobody_answers_is_told_and_what_lasts_is_not_tried_again(
    cause: BaseException, reason: str, remedy: str, tries: int
) -> None:
    transport = Failing(cause)
    said = await failure(pool_at(transport).session("chatbot").text("generate", QUESTION))
    assert said == f"model 'm' at {LOCAL} cannot be reached: {reason}. {remedy}"
    assert transport.tries == tries


async def test_a_certificate_is_told_before_a_run() -> None:
    assert await failure(pool_at(Failing(certificate(18))).check()) == (
        f"no OpenAI-compatible endpoint answers at {LOCAL} (its certificate is signed by itself alone, and "
        f"not trusted). {TRUST}"
    )


async def test_a_name_that_is_not_known_is_told_before_a_run() -> None:
    with pytest.raises(ModelError, match=r"\(there is no host of that name\)\. Start a server"):
        await pool_at(Failing(socket.gaierror(socket.EAI_NONAME, "no"))).check()


async def test_a_proxy_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Port 9 of this machine, where nobody listens."""
    monkeypatch.setenv("HTTP_PROXY", "http://user:pass-word-1@127.0.0.1:9")
    monkeypatch.setenv("KEY", "k")
    endpoints = {"default": Endpoint("m", "http://models.invalid/v1", "KEY")}
    pool = ModelPool(endpoints, backoff=wait_none())
    told = (
        r"through the proxy 127\.0\.0\.1:9: nobody listens there \(connection refused\)%s\. Correct "
        r"HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the endpoint's host in NO_PROXY\.$"
    )
    with pytest.raises(ModelError, match=told % r"\)"):
        await pool.check()
    with pytest.raises(ModelError, match=told % ""):
        await pool.session("chatbot").text("generate", QUESTION)
    await pool.close()


def test_causes_that_go_round_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert name_trouble(one) == Unreachable("", "Is the server running?")
    assert find_no_handle(one) is None

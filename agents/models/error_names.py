"""Names that endpoints give to errors, and to the fields that tell them.

Services write them in their own case and with their own signs between the words; see `simplify_name`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_FIELDS = 64
"""Fields of an object that are looked at."""

HOLDERS = ("error", "errors", "fault", "baseresp")
"""Fields whose presence says that there was an error; their names without case, `_` and `-`."""

WORDS = (
    "errormessage",
    "errormsg",
    "errortext",
    "errmsg",
    "err",
    "errordescription",
    "faultstring",
    "statusmsg",
    "retmsg",
)
"""Fields with an endpoint's words about an error, likewise."""

PLAIN_WORDS = (
    "message",
    "msg",
    "detail",
    "details",
    "description",
    "reason",
    "title",
    "text",
    "failure",
    "exception",
)
"""Fields that hold such words only where something else says that there was an error."""

CODES = ("code", "status", "statuscode", "errorcode", "type", "errortype", "errcode")
"""Fields with a status, or a name of it."""

NO_ERRORS = frozenset({"", "none", "null", "ok", "success", "noerror", "0", "false"})
"""Words of a field `error` that say that there is none."""

PROBLEM = frozenset({"type", "title", "status", "detail", "instance", "code"})
"""Fields of a problem in the form of RFC 9457, and of FastAPI's `{"detail": …}`."""

BAD = frozenset({"error", "fail", "failed", "failure"})
"""Values of `status`, `object` or `type` that say that there was an error."""

STATUS_OF_NAME: Sequence[tuple[str, int]] = (
    ("insufficientquota", 402),
    ("insufficientbalance", 402),
    ("billing", 402),
    ("payment", 402),
    ("ratelimit", 429),
    ("toomanyrequests", 429),
    ("resourceexhausted", 429),
    ("throttl", 429),
    ("overload", 503),
    ("unavailable", 503),
    ("capacity", 503),
    ("timeout", 504),
    ("deadlineexceeded", 504),
    ("authenti", 401),
    ("unauthori", 401),
    ("apikey", 401),
    ("permission", 403),
    ("forbidden", 403),
    ("notfound", 404),
    ("invalidrequest", 400),
    ("invalidargument", 400),
    ("badrequest", 400),
    ("validation", 400),
    ("contextlength", 400),
    ("contextsize", 400),
    ("failedprecondition", 400),
    ("internal", 500),
    ("servererror", 500),
    ("apierror", 500),
)
"""Parts of errors' names → the HTTP status that such an error has elsewhere."""

DELAYS = ("retrydelay", "retryafter", "retryafterseconds", "retryafters", "estimatedtime")
"""Fields that say when to come again, in seconds or as a time."""

BUSY_NAMES = ("ratelimit", "toomanyrequests", "resourceexhausted", "throttl", "overload")
"""Parts of errors' names of a service that is busy."""


def simplify_name(name: str) -> str:
    """Return the beginning of a name without case, `_`, `-` and spaces."""
    return name[:64].lower().replace("_", "").replace("-", "").replace(" ", "")


def list_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by their names without case, `_` and `-`."""
    return {simplify_name(str(name)): value for name, value in list(body.items())[:MOST_FIELDS]}

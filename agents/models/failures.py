"""Failures of a request, as sentences for people."""

from __future__ import annotations

from openai import APIConnectionError, APIStatusError, APITimeoutError

from hallulab.agents.models.answers import ModelError, RefusedRequest
from hallulab.agents.models.complaints import is_retryable, read_complaint
from hallulab.agents.models.pauses import read_pause
from hallulab.agents.models.receiving import read_object
from hallulab.agents.models.token_watch import StalledServer
from hallulab.agents.models.transport import CallRecord
from hallulab.agents.models.tries import LEAST_LEFT
from hallulab.agents.models.unreachable import find_no_handle, name_trouble


def explain_refusal(error: APIStatusError, where: str, record: CallRecord, total_s: float) -> RefusedRequest:
    """Return the failure that tells what an endpoint said, and its wish if that is too late.

    Args:
        where: the model and its address.
        total_s: seconds of all its tries and pauses.
    """
    status, told = error.status_code, read_complaint(read_object(error.response))
    pause = read_pause(error.response.headers)
    why = f": {told}" if told else " and gave no reason."
    sentence = f"{where} refused the request with status {status}{why}"
    if is_retryable(status) and pause is not None and record.spent_s + pause > (1 - LEAST_LEFT) * total_s:
        sentence += f" (It wants to be asked again in {pause:,.0f} seconds; --timeout is {total_s:g}.)"
    return RefusedRequest(sentence, status)


def explain_silence(error: APIConnectionError, where: str) -> ModelError:
    """Return the failure that tells why there is no answer of a model at an address."""
    if isinstance(error, APITimeoutError):
        if isinstance(error.__cause__, StalledServer):
            return ModelError(f"{where} has read and written {error.__cause__}. Look into its log.")
        return ModelError(f"{where} did not answer in time. Raise --timeout or lower --concurrency.")
    if (sentence := find_no_handle(error)) is not None:
        return ModelError(f"{where} was not asked: {sentence}")
    trouble = name_trouble(error)
    reason = f": {trouble.reason}" if trouble.reason else ""
    return ModelError(f"{where} cannot be reached{reason}. {trouble.remedy}")

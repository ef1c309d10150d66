"""Spans of OpenInference (Phoenix), which are read as those of OpenTelemetry are (`otel`)."""

from __future__ import annotations

from hallulab.scenarios.chats import otel
from hallulab.scenarios.chats.chat_format import ChatFormat

INFO = ChatFormat(
    name="openinference",
    about="spans of OpenInference",
    endings=(".json", ".jsonl"),
    read=otel.read,
    rank=4,
)

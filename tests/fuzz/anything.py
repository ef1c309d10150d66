"""Any JSON value in any field, and any bytes at any place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ODD: list[Any] = [
    *(None, True, "", " ", "a\ud800b", "\udfff", "\x00", "\x1b[31m", "\u202e", "[" * 50, "x" * 3000),
    *(0, -1, 1.5, 2**63, 10**30, -(10**12), 1e300, 1.7e308, float("nan"), float("inf"), float("-inf")),
    *([], {}, [[]], [None], ["x"], {"": None}, {"\ud800": "\ud800"}),
]
"""Values on which programs stumble."""

_ODD_BYTES = [b"\n", b"\r\n", b"\x00", b"\xff", b'"', b"{", b"," * 9, b"[" * 2000, b"9" * 5000, b"\\ud800"]

TEXTS = st.text(st.characters(), max_size=20)
"""Short texts, half characters among them."""

JSON = st.one_of(
    st.sampled_from(ODD).map(copy.deepcopy),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=6,
    ),
)
"""Any JSON value, also such as only lenient programs write."""


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A JSON document with any value in one to three of its fields, or without them."""
    found = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        places = [*_places(found)]
        if not places:
            break
        holder, step = draw(st.sampled_from(places))
        if draw(st.integers(0, 9)) == 0:
            del holder[step]
        elif isinstance(holder, dict) and draw(st.integers(0, 9)) == 0:
            holder[draw(TEXTS)] = holder.pop(step)
        else:
            holder[step] = draw(JSON)
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every field and item: what holds it, and its key or index there."""
    steps = range(len(value)) if isinstance(value, list) else list(value) if isinstance(value, dict) else ()
    for step in steps:
        yield value, step
        yield from _places(value[step])


@st.composite
def damaged(draw: st.DrawFn, held: bytes) -> bytes:
    """Bytes of which one to three stretches are cut out, turned over, or have any others in their place."""
    found = bytearray(held)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(found)))
        end = min(len(found), start + draw(st.integers(0, 8)))
        kind = draw(st.integers(0, 4))
        if kind == 0:
            found[start:] = b""
        elif kind == 1:
            found[start:end] = bytes(octet ^ 0xFF for octet in found[start:end])
        elif kind == 2:
            found[start:end] = draw(st.sampled_from(_ODD_BYTES))
        else:
            found[start:end] = draw(st.binary(max_size=8))
    return bytes(found)


def documents(value: Any) -> st.SearchStrategy[bytes]:
    """A JSON document as text, with any value in any field, any bytes at any place, or both; or any value."""
    written = changed(value).map(written_leniently)
    return st.one_of(
        written,
        written,
        damaged(written_leniently(value)),
        written.flatmap(damaged),
        JSON.map(written_leniently),
    )


def written_leniently(value: Any) -> bytes:
    """JSON as lenient programs write it: with NaN, and half characters in escapes."""
    return json.dumps(value).encode()

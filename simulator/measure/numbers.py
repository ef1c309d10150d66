"""Types of the numbers in reports."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

Rounded = Annotated[float, AfterValidator(lambda value: round(float(value), 6))]
"""A number to 6 decimals. Further digits are noise and would differ between machines."""

Interval = tuple[Rounded, Rounded] | None
"""Bounds of a 95% interval; None where there is none."""

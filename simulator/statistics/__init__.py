"""Intervals, tests and agreement: pure functions of numbers, which know no run."""

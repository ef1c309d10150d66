"""Counts what the journals hold: metrics, intervals, tests, costs; pure functions of what it is given."""

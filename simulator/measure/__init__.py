"""Count what the journals hold: metrics, intervals, tests and costs. All functions here are pure."""

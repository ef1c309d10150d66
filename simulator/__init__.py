"""Runs experiments, keeps them in folders, measures, reports, and measures detectors on labelled data."""

if __name__ != "hallulab.simulator":
    raise ImportError("this package is part of hallulab: import hallulab.simulator")

"""Runs experiments, keeps them in folders, measures, reports, and measures detectors on labelled data."""

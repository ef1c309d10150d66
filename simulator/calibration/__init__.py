"""Thresholds of detectors, and of a safeguard's topics, fitted to planted errors and their twins."""

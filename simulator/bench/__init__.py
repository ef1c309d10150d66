"""Detectors measured on labelled data."""

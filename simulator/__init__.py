"""Runs conversations and experiments, serves models, measures and reports."""

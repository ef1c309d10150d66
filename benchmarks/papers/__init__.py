"""Experiments of our five papers, repeated."""

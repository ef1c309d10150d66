"""Faults of a flagged sentence: the number, name or words, and what the evidence has instead."""

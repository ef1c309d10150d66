"""The wrong part of a flagged sentence: number, name or words, and the evidence's version."""

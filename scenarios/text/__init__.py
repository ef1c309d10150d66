"""Sentences, words, chunks, and how things are said: pure functions of text."""

"""Scenario packs: reading, checking, starting one; and the packs that come with hallulab."""

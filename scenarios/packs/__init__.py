"""Scenario packs: read, check and start one; and the packs that come with hallulab."""

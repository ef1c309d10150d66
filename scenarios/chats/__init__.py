"""Conversations in the formats of other tools: read from files, and written to them (docs/own-chats.md)."""

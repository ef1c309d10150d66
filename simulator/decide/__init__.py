"""Decide between chatbots while conversations are still held, with guarantees at any stopping time."""

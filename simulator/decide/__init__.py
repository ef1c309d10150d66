"""Decide between chatbots while conversations are still simulated, with guarantees at any stopping time."""

"""Agents: their models, what they look things up in, and the servers and processes these need."""

"""Agents: their models, what they look things up in, and the servers and processes these need."""

if __name__ != "hallulab.agents":
    raise ImportError("this package is part of hallulab: import hallulab.agents")

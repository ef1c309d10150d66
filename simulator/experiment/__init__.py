"""From an experiment file to finished conversations and verdicts."""

"""The simulated user: its messages, their flaws, and the summarizer that makes one of a real chat."""

"""A person talks to a chatbot of an experiment, and detectors judge each reply."""

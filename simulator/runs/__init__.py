"""The run folder: its journals, the saved experiment, its outputs."""

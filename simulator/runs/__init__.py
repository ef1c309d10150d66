"""The run folder: journals, the saved experiment, what may be written where."""

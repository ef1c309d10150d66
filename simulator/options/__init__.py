"""Options of the commands and of the Python API: one dataclass each, which both read."""

"""Who speaks, on which models, and with what to look up; and what that takes on this machine."""

"""Other people's detectors, each in a Python environment and a process of its own."""

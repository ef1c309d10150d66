"""Other people's detectors, each in a process of its own, in Python environments beside ours."""

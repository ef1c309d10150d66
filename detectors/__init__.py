"""The judges: one file or sub-folder a method, behind the `Detector` protocol."""

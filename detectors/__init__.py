"""The judges, one folder per method; `base`, `explanations` and `features` hold what methods share."""

if __name__ != "hallulab.detectors":
    raise ImportError("this package is part of hallulab: import hallulab.detectors")

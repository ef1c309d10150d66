"""Shared parts of the methods: the protocol, a guarded judgement, thresholds, calibration, questions."""

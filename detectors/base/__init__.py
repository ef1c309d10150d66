"""What every method stands on: the protocol, a guarded judgement, thresholds, calibration, questions."""

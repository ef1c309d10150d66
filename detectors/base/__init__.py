"""Parts of every method: the protocol, a guarded judgement, thresholds, calibration, questions."""

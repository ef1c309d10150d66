"""What every method uses: the protocol, a guarded judgement, thresholds, calibration, questions."""

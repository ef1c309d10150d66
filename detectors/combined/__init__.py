"""Our own detector: classifiers read together what the cheap methods measure."""

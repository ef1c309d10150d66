"""Our own detector: what the cheap methods measure, read together by classifiers."""

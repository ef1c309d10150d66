"""A gate for changes: whether a run is worse than a baseline beyond the noise."""

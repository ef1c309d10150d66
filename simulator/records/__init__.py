"""A run as data: the experiment, what made its results, the run folder and its journals."""

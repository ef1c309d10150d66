"""The judges, one folder per method; `base` and `features` hold what methods share."""

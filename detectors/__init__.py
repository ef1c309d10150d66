"""The judges, one folder a method; `base` and `features` hold what methods share."""

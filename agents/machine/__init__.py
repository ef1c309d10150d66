"""This machine: downloads, weights, environments, a cache, and processes that end with us."""

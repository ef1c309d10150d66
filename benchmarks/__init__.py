"""Scripts behind the numbers in README and docs."""

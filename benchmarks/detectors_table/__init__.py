"""Measure all detectors on all data sets, in one table: `python -m benchmarks.detectors_table --data DIR`."""

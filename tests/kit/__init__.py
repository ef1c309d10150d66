"""Test equipment that several rooms of tests share, and the benchmarks with them."""

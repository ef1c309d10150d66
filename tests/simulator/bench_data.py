"""What benchmarks of tests measure on."""

from hallulab.simulator.bench.results import BenchData

DATA = BenchData(dataset="d", replies=3, split="all replies", tested_on=3)

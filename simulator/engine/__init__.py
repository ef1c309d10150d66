"""The engine: who takes part in a run, and how its conversations are run and judged."""

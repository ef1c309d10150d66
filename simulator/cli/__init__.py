"""The `hallulab` command. Commands do their heavy imports inside, so that `--help` is quick."""

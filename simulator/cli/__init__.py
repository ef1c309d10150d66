"""The `hallulab` command. Heavy imports happen inside the commands, so that `--help` is quick."""

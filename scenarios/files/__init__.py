"""Reading what others wrote: JSON, JSON lines, YAML, paths, with errors that say where."""

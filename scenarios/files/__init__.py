"""Read other people's JSON, JSON lines, YAML and paths, with errors that name the place."""

"""Which turns of a run to annotate next: they are drawn, written into a sheet, and read from it."""

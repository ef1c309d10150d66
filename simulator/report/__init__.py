"""Shows what was counted: report.json, a terminal table, a self-contained page."""

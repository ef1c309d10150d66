"""Show what was counted: report.json, report.csv, a terminal table, a self-contained page."""

"""The metrics of a run's report, one file each; a file here is found by being here."""

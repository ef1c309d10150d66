"""The charts of a run's page, one file each; a file here is found by being here."""

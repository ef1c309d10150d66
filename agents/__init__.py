"""Who speaks: the model client, the simulated user and the role agents."""

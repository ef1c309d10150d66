"""How the time of a function grows with a text that is made to be slow."""

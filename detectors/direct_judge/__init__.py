"""One yes/no question about the whole reply: what every other method must justify its cost against."""

"""One yes/no question about the whole reply: the baseline that other methods' costs are held against."""

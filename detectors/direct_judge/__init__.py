"""One yes/no question about the whole reply: the baseline that justifies the cost of other methods, or
not."""

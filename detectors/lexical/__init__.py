"""The lexical floor: words that the evidence does not hold."""

"""The lexical floor: count words that the evidence lacks."""

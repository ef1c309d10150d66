"""The EvidenceChain paper's experiment on its audit corpus; see `__main__`."""

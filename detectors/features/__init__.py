"""Shared parts of EvidenceChain and `combined`: features of sentences and words, learning, judgements."""

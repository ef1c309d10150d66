"""What EvidenceChain and `combined` share: features of sentences and words, learning, judgements."""

"""EvidenceChain: compare a reply's sentences and words with the chunks of their source."""

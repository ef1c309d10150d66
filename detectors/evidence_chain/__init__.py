"""EvidenceChain: a reply's sentences and words against the chunks of their source (EvidenceChain paper)."""

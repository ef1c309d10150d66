"""LogicGraph: evidence cut up, related pieces put together, entailment weighted by relevance."""

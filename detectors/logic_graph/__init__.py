"""LogicGraph: cut evidence, group related pieces, weight entailment by relevance."""

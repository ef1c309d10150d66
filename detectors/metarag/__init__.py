"""MetaRAG: metamorphic testing of each factoid of a reply against the evidence."""

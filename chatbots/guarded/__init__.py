"""A chatbot that wraps another one with a detector and a policy: MetaRAG's safeguards (section 3.6)."""

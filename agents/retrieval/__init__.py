"""Search for agents: embeddings, the vector table, the knowledge base, the reformulated query."""

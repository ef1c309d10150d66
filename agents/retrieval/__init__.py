"""What agents look things up in: embeddings, the vector table, the knowledge base, the reformulated query."""

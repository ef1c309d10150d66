"""RAG-Trust: prompt strategies against poisoned and distracting documents ("In RAG we Trust?")."""

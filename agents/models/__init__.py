"""The served models: client, wire, recordings, prompts, and keys kept out of everything."""

"""Writing scenario packs: personas, documents, reference chats."""

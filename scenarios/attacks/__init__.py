"""False, irrelevant and malicious text for documents and users, to see what chatbots make of it."""

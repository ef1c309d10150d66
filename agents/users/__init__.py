"""The simulated user: its messages, their flaws, and the summarizer of real chats."""

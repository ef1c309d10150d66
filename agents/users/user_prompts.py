"""The prompt files of the simulated user."""

USER_PROMPTS = (
    "user_opening",
    "user_message",
    "user_opening_short",
    "user_message_short",
    "user_goal",
    "user_patience",
)
"""For the opening message and later messages (usual, short), whether a goal was told, whether to give up."""

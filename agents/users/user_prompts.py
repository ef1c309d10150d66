"""The prompt files of the simulated user."""

USER_PROMPTS = ("user_opening", "user_message", "user_goal", "user_patience")
"""For the opening message, later messages, whether a goal was told, and whether to give up."""

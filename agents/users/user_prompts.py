"""The prompt files of the simulated user: all that its model reads besides the persona and the chat."""

USER_PROMPTS = ("user_opening", "user_message", "user_goal", "user_patience")
"""The opening message, every later one, whether a goal was told, whether to give up."""

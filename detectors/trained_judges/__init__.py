"""Served models that were trained to detect hallucinations: LettuceDetect v2 and Granite Guardian."""

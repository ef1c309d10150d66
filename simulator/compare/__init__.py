"""Two or more runs side by side: what is measured to differ, which verdicts changed, what was changed."""

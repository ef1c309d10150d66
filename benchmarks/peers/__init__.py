"""hallulab side by side with other simulators of conversations, on the same work."""

"""What large runs cost (`docs/scale.md`)."""

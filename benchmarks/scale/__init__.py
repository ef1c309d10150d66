"""What large runs cost (`docs/studies/scale.md`)."""

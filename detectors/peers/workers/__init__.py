"""Programs that run in the peers' environments; nothing of ours can be imported there."""

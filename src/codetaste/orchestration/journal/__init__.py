"""The append-only journal and the state that is folded from it."""

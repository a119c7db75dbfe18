"""Search over instances, rules and messages."""

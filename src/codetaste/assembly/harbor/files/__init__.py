"""Files that every exported task has; the verifier runs in a container that has no codetaste."""

"""The `codetaste` command."""

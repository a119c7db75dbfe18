"""The daemon inside every sandbox, and the host's end of it."""

"""Outputs read back into records."""

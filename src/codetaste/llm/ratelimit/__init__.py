"""Permits and back-off."""

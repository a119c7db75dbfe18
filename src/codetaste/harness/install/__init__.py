"""Installed releases of CLI agents."""

"""Runs jobs under limits."""

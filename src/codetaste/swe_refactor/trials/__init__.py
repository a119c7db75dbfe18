"""Trials: what strategies make of instances, and what the answers are worth (SWE-Refactor §4)."""

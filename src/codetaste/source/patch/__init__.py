"""Unified diffs."""

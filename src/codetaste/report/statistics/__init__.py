"""Intervals, tests and aggregation."""

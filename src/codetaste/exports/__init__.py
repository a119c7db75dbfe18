"""Runs in formats of other tools: ATIF trajectories, Inspect logs."""

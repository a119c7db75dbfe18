"""Commit discovery: sources of commits, and the three stages that choose candidates (CodeTaste §3.1, A.1)."""

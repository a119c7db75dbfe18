"""Commits and diffs of local clones, pairs of commits from a CSV file, and commits known only by hash."""

"""Pinned jars of Maven repositories: which ones, where they come from, and where they are stored."""

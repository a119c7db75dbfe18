"""Leaderboard, comparisons, groups, instances, figures."""

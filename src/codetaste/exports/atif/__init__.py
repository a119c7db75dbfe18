"""Trials in ATIF, Harbor's Agent Trajectory Interchange Format; ``transcripts/atif.py`` reads it back.

ATIF has one step for each message and for each reply with its calls and their results. Where it has no field,
ours is below ``extra.codetaste``; a reader that does not know it loses the addresses of events, and whether a
tool failed.
"""

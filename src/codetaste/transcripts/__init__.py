"""Conversations of agents and models as one kind of event, whatever has recorded them, and their times."""

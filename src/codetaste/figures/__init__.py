"""Figures of results, drawn by matplotlib from the tables of reports, each with its numbers beside it."""

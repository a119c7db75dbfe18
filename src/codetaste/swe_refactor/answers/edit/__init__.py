"""Edits of Java files by byte ranges, so that all other bytes stay as they are."""

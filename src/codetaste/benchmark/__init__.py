"""The published benchmark layout, read and written."""

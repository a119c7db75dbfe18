"""Fetching a published benchmark."""

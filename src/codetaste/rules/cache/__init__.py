"""Incremental scanning: answers of the engine, cached."""

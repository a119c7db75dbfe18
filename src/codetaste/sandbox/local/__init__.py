"""Sandboxes without a container engine."""

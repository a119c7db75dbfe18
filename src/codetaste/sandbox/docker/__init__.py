"""Sandboxes in Docker or Podman."""

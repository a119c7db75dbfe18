"""CLI agents of third parties: described, installed, run in a sandbox, and their patch extracted."""

"""Containment of untrusted commands: one-shot shells and persistent sandboxes."""

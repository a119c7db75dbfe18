"""The allow-list egress proxy."""

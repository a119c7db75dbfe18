"""Test runs in fresh sandboxes: what environments and evaluations share."""

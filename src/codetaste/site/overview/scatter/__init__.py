"""The drawing of cost against a score."""

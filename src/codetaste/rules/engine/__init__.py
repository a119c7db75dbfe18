"""The OpenGrep program."""

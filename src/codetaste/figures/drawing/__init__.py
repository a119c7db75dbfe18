"""How figures look, and their bytes."""

"""Step 3 of the construction: the published fields of a refactoring, and what surrounds its method (§3.3)."""

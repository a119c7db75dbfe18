"""Jobs, budgets, journal and scheduler. Knows nothing of models or refactoring."""

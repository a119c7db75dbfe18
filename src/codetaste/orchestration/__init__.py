"""Jobs, budgets, journal and scheduler. Nothing here depends on models or on refactoring."""

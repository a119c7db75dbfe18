"""Jobs, budgets, the journal and the scheduler. Knows nothing of models or refactoring."""

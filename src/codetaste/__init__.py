"""Build and run code-refactoring benchmarks with concurrent agents under hard cost and time budgets."""

__version__ = "0.1.0"

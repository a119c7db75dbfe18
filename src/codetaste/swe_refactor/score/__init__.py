"""Scores of answers: the intended refactoring, compilation and tests, CodeBLEU (SWE-Refactor §3.2)."""

"""Nested budgets: reserve before a call, settle after it."""

"""Patches that evade the rules: old code that no rule sees, and matches in code that has no effect."""

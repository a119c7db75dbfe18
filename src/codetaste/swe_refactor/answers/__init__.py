"""Prompts of instances, and what becomes of the answers: parts, then edited files (Appendix E)."""

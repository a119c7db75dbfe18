"""Stage 1 of mining: keyword sets K±, their counts in a message, the conditions on them (CodeTaste A.1)."""

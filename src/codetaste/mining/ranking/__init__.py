"""Stage 1: one query over all commits that counts keywords, filters and orders (CodeTaste §3.1, A.1)."""

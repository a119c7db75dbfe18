"""Stage 2: the filters that read a commit's diff (CodeTaste A.1)."""

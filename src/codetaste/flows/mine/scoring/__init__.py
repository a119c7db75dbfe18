"""Stage 3 of mining as jobs: a model scores all messages, then the diffs of the best (CodeTaste A.1)."""

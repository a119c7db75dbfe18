"""Stage 1 in BigQuery: the same query, compiled, estimated and, after a question, run."""

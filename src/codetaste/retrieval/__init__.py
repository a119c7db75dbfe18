"""Retrieval of examples: BM25 and sentence embeddings, fused and reranked (SWE-Refactor, Appendix F)."""

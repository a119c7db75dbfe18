"""Benchmarks assembled from the products of runs, and written in the format of another harness."""

"""Evaluate predictions: apply the patch, scan, count, and write and read results in the published layout."""

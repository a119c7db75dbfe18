"""Rules that a benchmark has: recounted, and what they cover."""

"""Facts about a benchmark's instances, for Tables 1 and 2."""

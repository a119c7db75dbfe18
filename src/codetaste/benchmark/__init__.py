"""Reading, writing and fetching benchmarks in the published layout."""

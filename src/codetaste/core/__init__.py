"""Small things that every room uses: files, text, processes, concurrency. No domain knowledge."""

"""Why trials fail: categories after the paper's error taxonomy (§5)."""

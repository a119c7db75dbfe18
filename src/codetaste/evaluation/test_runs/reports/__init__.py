"""Reports of single tests that test runners write: which files they are, and what they say."""

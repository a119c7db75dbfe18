"""Whether an open description gives away what only the golden patch knows."""

"""Step 4 of the construction: compile and test both sides of a candidate, measure the target's coverage."""

"""The result files of an evaluation."""

"""The flows: rule discovery, inference and evaluation. Each turns config and benchmark into jobs."""

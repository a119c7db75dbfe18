"""SWE-Refactor: strategies by type and project."""

"""The status of a run, from its journal."""

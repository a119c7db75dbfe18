"""Execution environments: existing scripts, neighbours and a setup agent are tried, gates decide."""

"""Runs that mine their own benchmark, and carry its instances through the other flows."""

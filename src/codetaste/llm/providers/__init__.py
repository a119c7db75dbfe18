"""The providers that answer model calls."""

"""The model server that command-line agents call through."""

"""Standard streams, error messages and exit codes of every command."""

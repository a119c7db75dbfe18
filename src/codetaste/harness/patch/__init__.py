"""The patch that an agent leaves."""

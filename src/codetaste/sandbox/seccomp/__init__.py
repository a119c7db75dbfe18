"""System-call filters."""

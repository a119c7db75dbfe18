"""What a sandbox holds before the agent starts."""

"""What the agent did: test runs and bulk edits, counted from transcripts."""

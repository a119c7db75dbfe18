"""Output for users: live progress, logs, status, summaries, reports and statistics."""

"""Run one agent in one sandbox: what inference and environments share."""

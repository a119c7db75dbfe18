"""Run test suites in sandboxes, and judge what they report."""

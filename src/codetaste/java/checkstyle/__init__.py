"""Checkstyle as a service: violations of a rule set in Java texts."""

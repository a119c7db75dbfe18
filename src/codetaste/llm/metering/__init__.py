"""Paid, journalled model calls."""

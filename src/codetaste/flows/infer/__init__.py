"""Trials: plan, judge, execute."""

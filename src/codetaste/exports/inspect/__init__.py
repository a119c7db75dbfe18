"""Runs as logs of Inspect, one for each run, agent and setting: zip files that ``inspect view`` reads."""

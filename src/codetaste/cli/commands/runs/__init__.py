"""Commands on the folder of a run: its status, its limits, calls of unknown cost, case studies of it."""

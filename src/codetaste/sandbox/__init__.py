"""Where commands run, and nothing else."""

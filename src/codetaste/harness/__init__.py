"""Other people's command-line agents: what they are, how they are installed and run, and what they leave."""

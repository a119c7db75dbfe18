"""What each subcommand of ``codetaste`` does, one module for each word of the command line."""

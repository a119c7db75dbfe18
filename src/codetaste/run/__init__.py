"""One run of one config file."""

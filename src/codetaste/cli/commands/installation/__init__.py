"""Commands on what is installed on this machine: agents, Java, and the check of everything."""

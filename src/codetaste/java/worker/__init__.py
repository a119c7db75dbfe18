"""Java programs that answer requests, in JVMs that are replaced when they hang or die."""

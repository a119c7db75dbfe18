"""Names of code in descriptions and in rules."""

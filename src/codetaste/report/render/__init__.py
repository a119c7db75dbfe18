"""Tables in each format."""

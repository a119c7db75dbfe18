"""Search an image for what must not be in it: secrets, and the golden patch."""

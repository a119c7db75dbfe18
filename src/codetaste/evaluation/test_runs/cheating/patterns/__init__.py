"""What single lines of a cheating patch look like, by kind and language."""

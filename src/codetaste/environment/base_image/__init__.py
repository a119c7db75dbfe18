"""Base images, polyglot and for Java: their recipes, how they are built, and the proof of each tool."""

"""The polyglot base image: its recipe, how it is built, and the proof of each tool in it."""

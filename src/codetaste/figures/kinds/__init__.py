"""One module for each kind of figure: its numbers as a table, and the drawing of that table."""

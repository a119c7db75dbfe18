"""Tables in LaTeX that fit the width and the height of their page."""

"""The patch of a trial with the lines that rules match, as data of its page."""

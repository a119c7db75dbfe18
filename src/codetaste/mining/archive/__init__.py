"""GH Archive: hour files of all schema eras read into records, and how much of the time they cover."""

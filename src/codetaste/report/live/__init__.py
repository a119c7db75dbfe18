"""What is shown while a run is under way."""

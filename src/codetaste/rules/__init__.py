"""OpenGrep rules: parsing, scanning, validity and distinctness."""

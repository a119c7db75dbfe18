"""What a prediction is worth: its patch applied, scanned, counted, and told in the published layout."""

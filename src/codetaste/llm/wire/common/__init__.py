"""What several protocols share."""

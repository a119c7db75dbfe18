"""Rule discovery."""

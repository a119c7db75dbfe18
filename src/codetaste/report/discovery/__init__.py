"""Tables about rule discovery."""

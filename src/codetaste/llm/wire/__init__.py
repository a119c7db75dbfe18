"""What is known of each provider's wire protocol, once."""

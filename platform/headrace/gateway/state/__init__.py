"""What is known of a running request."""

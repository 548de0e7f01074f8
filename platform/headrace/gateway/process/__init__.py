"""What one web process owns: configuration, clients of its stores, heartbeat, metrics, placement."""

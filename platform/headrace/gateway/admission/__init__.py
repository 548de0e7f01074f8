"""From an operation to a held request: who asks, where it may go, what it takes from its meters."""

"""Stand-ins for engines: servers that speak an engine's protocol and behave as they are told."""

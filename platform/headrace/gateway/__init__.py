"""The data plane, /v1/*: from a client's bytes to a settled request."""

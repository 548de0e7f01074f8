"""One file for each public path."""

"""The console's pages of pools and providers."""

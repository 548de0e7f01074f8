"""The console's pages of models and routes."""

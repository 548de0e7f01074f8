"""Explaining routes to operators."""

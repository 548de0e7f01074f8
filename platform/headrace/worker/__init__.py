"""Celery's scheduler and the worker's signs of life."""

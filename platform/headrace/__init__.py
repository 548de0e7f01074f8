"""Headrace: one OpenAI-compatible door in front of a company's LLM engines."""

# Not for the worker alone: without it whoever sends a task would look for a broker where there is none.
from headrace.celery import app as celery_app

__all__ = ["celery_app"]

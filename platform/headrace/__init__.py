"""Headrace: one OpenAI-compatible door in front of a company's LLM engines."""

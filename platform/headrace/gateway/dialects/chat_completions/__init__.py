"""OpenAI's chat completions: from a body's bytes to a checked chat."""

"""What the person sees once everything runs: where to look, how to log in, and a line to paste."""

import json
import shlex
from pathlib import Path

QUESTION = "Name three rivers in Europe."


def curl(url: str, key: str, model: str) -> str:
    """A command on one line that streams an answer when pasted into a shell."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
    words = ["curl", "-N", f"{url}/v1/chat/completions", "-H", f"Authorization: Bearer {key}"]
    words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return " ".join(map(shlex.quote, words))


def text(demo: Path, *, has_engine: bool) -> str:
    """The text for what `demo.json` holds."""
    known = json.loads(demo.read_text())
    url, admin = known["url"], known["admin"]
    what_next = "No engine runs: nothing answers before a pool has a replica."
    if has_engine:
        what_next = f"Paste this to see an answer stream:\n\n{curl(url, known['api_key'], 'smollm2')}"
    return f"""
Headrace runs. Ctrl-C stops it.

  portal    {url}/t/{known["tenant"]}/
  admin     {admin["url"]}   user {admin["username"]}   password {admin["password"]}
  API       {url}/v1   tenant {known["tenant"]}   key {known["api_key"]}

{what_next}
"""

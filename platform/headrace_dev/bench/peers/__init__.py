"""The routers Headrace is compared with, each from an environment of its own that `make bench-peers` builds."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


def program(peer: str, name: str) -> Path:
    """A program of the peer's environment; it need not exist."""
    return ROOT / f".venv-peers-{peer}" / "bin" / name

"""The bundled cards: open-weight models and accelerators, each figure with its source in the file."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engines.sizing import hfconfig
from engines.sizing.architecture import Architecture
from engines.sizing.checks import known

FOLDER = Path(__file__).parent / "cards"


@dataclass(frozen=True)
class ModelCard:
    """`published_total` and `published_active` are the publisher's parameter counts, rounded as published; the
    tolerances say how far from them this arithmetic may be (rounding, mostly)."""

    name: str
    repository: str
    architecture: Architecture
    source: str
    checkpoint_format: str = "bf16"
    published_total: float | None = None
    published_tolerance: float = 0.0
    published_active: float | None = None
    active_tolerance: float = 0.0
    active_counts_embedding: bool = True
    published_source: str = ""
    note: str = ""


@cache
def _models() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted((FOLDER / "models").glob("*.json")):
        row = json.loads(path.read_text())
        for name in [row["name"], *row.get("aliases", [])]:
            rows[name] = row
    return rows


def model_names() -> tuple[str, ...]:
    """Names without aliases, sorted."""
    return tuple(sorted({row["name"] for row in _models().values()}))


@cache
def model(name: str) -> ModelCard:
    """The card called `name` (or an alias). Raises UnknownName with near names."""
    row = _models()[known("model", name, _models())]
    published = row["published"]
    return ModelCard(
        name=row["name"],
        repository=row["repository"],
        architecture=hfconfig.read(row["config"]),
        source=row["config_source"],
        checkpoint_format=row.get("checkpoint_format", "bf16"),
        published_total=published["total"],
        published_tolerance=published["tolerance"],
        published_active=published.get("active"),
        active_tolerance=published.get("active_tolerance", 0.0),
        active_counts_embedding=published.get("active_counts_embedding", True),
        published_source=published["source"],
        note=row.get("note", ""),
    )


def model_from_config(path: Path) -> ModelCard:
    """A card for a config.json on disk. Raises UnknownArchitecture, BadValue, OSError or json.JSONDecodeError."""
    config = json.loads(path.read_text())
    name = str(config.get("_name_or_path") or path.parent.name or path.stem)
    return ModelCard(name=name, repository=name, architecture=hfconfig.read(config), source=str(path))

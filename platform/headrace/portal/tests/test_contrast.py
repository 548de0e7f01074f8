"""The colours of light and dark, as WCAG 2.2 AA wants them told apart: 4.5 to 1 for text, 3 to 1 for what is looked at.

https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
"""

import re
from pathlib import Path

import pytest

import headrace

TOKENS = (Path(headrace.__path__[0]) / "portal/static/headrace/portal/tokens.css").read_text()
_LIGHT, _, _REST = TOKENS.partition("@media (prefers-color-scheme: dark)")
_DARK = _REST.partition("@media print")[0]
GROUNDS = ("ground", "sheet", "raised", "accent-tint", "good-tint", "warn-tint", "bad-tint")
TEXT = [
    *((ink, ground) for ink in ("ink", "quiet") for ground in GROUNDS),
    *(("accent", ground) for ground in ("ground", "sheet", "raised", "accent-tint", "warn-tint")),
    *((f"{state}", ground) for state in ("good", "warn", "bad") for ground in ("sheet", "ground", f"{state}-tint")),
    ("accent-strong", "accent-tint"), ("accent-strong", "sheet"),
    ("on-accent", "accent"), ("on-accent", "accent-strong"),
]  # fmt: skip
LOOKED_AT = [
    *(("line-strong", ground) for ground in ("ground", "sheet")),
    *((f"series-{number}", "sheet") for number in range(1, 6)),
]


def _colours(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+):\s*#([0-9a-f]{3,6})\b", text))


SCHEMES = {"light": _colours(_LIGHT), "dark": _colours(_LIGHT) | _colours(_DARK)}


def luminance(colour: str) -> float:
    digits = "".join(each * 2 for each in colour) if len(colour) == 3 else colour
    channels = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_keeps_colours_apart(scheme: str) -> None:
    colours, low = SCHEMES[scheme], []
    for pairs, least in ((TEXT, 4.5), (LOOKED_AT, 3.0)):
        for one, other in pairs:
            darker, lighter = sorted((luminance(colours[one]), luminance(colours[other])))
            if (ratio := (lighter + 0.05) / (darker + 0.05)) < least:
                low.append(f"{one} on {other}: {ratio:.2f}")
    assert not low

"""What a request may consist of beside its words, and which models take it.

What an engine takes is known from its pool's setting, or where that says nothing from the engine itself. Unknown is
not "no": such a request is sent, and the engine refuses what it does not take.
"""

from collections.abc import Collection

from django.core.exceptions import ValidationError

MODALITIES = ("text", "image", "audio", "video")
MEDIA = frozenset(MODALITIES) - {"text"}


def lacking(modalities: Collection[str]) -> frozenset[str]:
    """The media that a model of these modalities does not take; none where nothing is said."""
    return MEDIA - set(modalities) if modalities else frozenset()


def check_modalities(value: list[str]) -> None:
    """Raises ValidationError."""
    if unknown := set(value) - set(MODALITIES):
        raise ValidationError(f"There is no modality {min(unknown)}, only {', '.join(MODALITIES)}.")
    if value and "text" not in value:
        raise ValidationError("Every model takes text: list it with the others, or leave the list empty.")

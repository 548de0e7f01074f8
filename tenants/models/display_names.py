"""Names that people give to what is theirs. They stand on every page and in letters: one line that can be read."""

import unicodedata

from django.core.exceptions import ValidationError

# Control characters, and the ends of lines and paragraphs.
_NEVER = frozenset({"Cc", "Cs", "Zl", "Zp"})
# What turns the direction of the text around it (Unicode's annex 9): a name could make its page say something else.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and a symbol, by their category, that show nothing


def check_display_name(text: str) -> None:
    """Raises ValidationError for what is not one line, or shows nothing."""
    if any(unicodedata.category(each) in _NEVER or each in _TURNING for each in text):
        raise ValidationError("It contains characters that cannot be shown: write it anew, without pasting.")
    if not any(unicodedata.category(each)[0] in "LNPS" and each not in _BLANK for each in text):
        raise ValidationError("Nothing of it can be seen.")

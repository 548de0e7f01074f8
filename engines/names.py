"""What may name a pool, provider or replica, and what may be an upstream's address."""

from django.core.validators import RegexValidator

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
# No user info (it would be a secret in the clear), no query, no fragment.
URL_PATTERN = r"^https?://[A-Za-z0-9._\[\]:-]+(/[A-Za-z0-9._~/-]*)?$"

# \Z, not $: Python's $ also matches before a last line feed.
check_name = RegexValidator(
    NAME_PATTERN.replace("$", r"\Z"),
    "A name is 1 to 63 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit.",
)
check_url = RegexValidator(
    URL_PATTERN.replace("$", r"\Z"),
    "An address is http:// or https://, a host and an optional port and path, without user, query or fragment.",
)
check_root = RegexValidator(r"/v1/*\Z", "A replica's address is the server's root, without /v1.", inverse_match=True)

CURRENCY_PATTERN = r"^[A-Z]{3}$"
check_currency = RegexValidator(r"^[A-Z]{3}\Z", "A currency is three capital letters, such as USD.")

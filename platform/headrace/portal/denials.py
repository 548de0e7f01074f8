"""Refusals that are nothing to do with the visitor's role, and say so. The plain PermissionDenied means the role."""

from django.core.exceptions import PermissionDenied


class Refused(PermissionDenied):
    """What the 403 page says: its heading, a sentence or two, and a link (address, text) to where it may be looked at.

    Only for what the visitor may see anyway: it tells that the thing exists.
    """

    def __init__(self, title: str, text: str, link: tuple[str, str] | None = None) -> None:
        super().__init__(title)
        self.title, self.text, self.link = title, text, link


def set_by_operator(what: str, link: tuple[str, str]) -> Refused:
    """`what`: the thing with its verb, as a sentence begins with it ("The budget monthly was")."""
    text = f"{what} set by the platform's operators and is read only here. Ask them to change it."
    return Refused("Set by your operator", text, link)


def operator_looks() -> Refused:
    return Refused(
        "Read only for operators",
        "You look at this portal as an operator, not as a member: you see it and change nothing. The admin is where"
        " operators make changes.",
    )

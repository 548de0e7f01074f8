"""The forms of a page, as a browser would send them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """action: "" for the page's own address. fields: names with the values that the page proposes."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.open: Form | None = None
        self.select = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form":
            self.open = Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self.open)
        elif self.open is None:
            return
        elif tag in ("input", "textarea", "select", "button") and given.get("name"):
            if tag == "input" and given.get("type") in ("checkbox", "radio") and "checked" not in given:
                self.open.fields.setdefault(given["name"], "")
            else:
                self.open.fields[given["name"]] = given.get("value", "")
            self.select = given["name"] if tag == "select" else ""
        elif tag == "option" and self.select and ("selected" in given or not self.open.fields[self.select]):
            self.open.fields[self.select] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.open = None


def forms_of(page: str) -> list[Form]:
    reader = _Reader()
    reader.feed(page)
    return reader.forms

"""The page on which the admin asks before it saves: what it says, and how somebody says yes."""

import re
from html import unescape
from typing import Any

from django.test import Client


def words(answer: Any) -> str:
    assert answer.status_code == 200
    shown = answer.content.decode().partition("hr-question")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", shown)).split())


def said_again(answer: Any) -> list[tuple[str, str]]:
    """What the question's own form sends, once somebody says yes."""
    form = answer.content.decode().partition("hr-question")[2].partition("</form>")[0]
    return [
        (unescape(name), unescape(text))
        for name, text in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form)
    ]


def say_yes(client: Client, page: str, answer: Any) -> Any:
    return client.post(page, dict(said_again(answer)))


def save(client: Client, page: str, form: dict[str, Any]) -> Any:
    """Post the form, and say yes to what is asked."""
    answer = client.post(page, form)
    return say_yes(client, page, answer) if b"hr-question" in answer.content else answer

"""README's documents do what they say they do: each is taken as it stands, after those before it."""

import re

import pytest
from django.conf import settings

from headrace.apply.document import apply_document

DOCUMENTS = re.findall(r"^```yaml\n(.*?)^```", (settings.ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.django_db
def test_it_applies_them_one_after_the_other() -> None:
    assert len(DOCUMENTS) >= 4
    for document in DOCUMENTS:
        assert apply_document(document, source="README.md", actor="test").changes
        assert apply_document(document, source="README.md", actor="test").changes == []

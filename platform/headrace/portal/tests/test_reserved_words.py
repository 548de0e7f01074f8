"""Slugs in addresses: whatever word a slug is, its own page is at its own address."""

import re
from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, resolve, reverse
from django.urls.converters import PathConverter, StringConverter, UUIDConverter

from headrace.portal.request import KeyIdConverter
from headrace.portal.tests.cast import Cast, browser
from tenants.models import Project
from tenants.models.names import SLUG_PATTERN, check_slug


def patterns(resolver: URLResolver, route: str = "", space: str = "") -> Iterator[tuple[str, str, URLPattern]]:
    for each in resolver.url_patterns:
        path = route + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each, path, f"{each.namespace}:" if each.namespace else space)
        elif each.name:
            yield path, space + each.name, each


ADDRESSES = list(patterns(get_resolver()))
WORDS = sorted(
    {word for route, _, _ in ADDRESSES for word in re.split(r"/|<[^>]*>", route) if re.match(SLUG_PATTERN, word)}
)


def takes_slugs(converter: object) -> bool:
    return isinstance(converter, StringConverter | PathConverter) and not isinstance(converter, KeyIdConverter)


def example(converter: object) -> object:
    if isinstance(converter, UUIDConverter):
        return "00000000-0000-7000-8000-000000000000"
    return "ABCDEFGHIJKL" if isinstance(converter, KeyIdConverter) else "acme" if takes_slugs(converter) else 1


def test_every_slug_has_an_address_of_its_own() -> None:
    assert "new" in WORDS
    tried = 0
    for _, name, pattern in ADDRESSES:
        converters = pattern.pattern.converters
        for parameter in (each for each, converter in converters.items() if takes_slugs(converter)):
            for word in WORDS:
                given = {each: example(converter) for each, converter in converters.items()} | {parameter: word}
                found = resolve(reverse(name, kwargs=given))
                assert found.view_name == name, word
                assert found.kwargs[parameter] == word, name
                tried += 1
    assert tried > 1000


@pytest.mark.parametrize("slug", ["new", "add", "change"])
def test_a_project_of_any_name_opens_from_the_list(cast: Cast, slug: str) -> None:
    check_slug(slug)
    alice = browser("alice")
    assert alice.post("/t/acme/projects/new/", {"name": "Novelties", "slug": slug}).status_code == 302
    (address,) = re.findall(r'href="([^"]+)">Novelties<', alice.get("/t/acme/projects/").content.decode())
    assert "Novelties" in alice.get(address).content.decode()
    alice.post(address, {"name": "Renamed"})
    assert Project.objects.get(tenant="acme", slug=slug).name == "Renamed"

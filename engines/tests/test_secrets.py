"""Upstream secrets at rest."""

import pytest
from pytest_django import Settings

from headrace_core import sealing


def test_it_opens_what_it_sealed_and_seals_differently_each_time() -> None:
    sealed = sealing.seal("sk-upstream-é")
    assert sealing.open(sealed) == sealing.open(memoryview(sealed)) == "sk-upstream-é"
    assert b"upstream" not in sealed
    assert sealing.seal("sk-upstream-é") != sealed


def test_it_opens_what_an_older_secret_key_sealed(settings: Settings) -> None:
    settings.SECRET_KEY = "a" * 50
    sealed = sealing.seal("text")
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "b" * 50, ["a" * 50]
    assert sealing.open(sealed) == "text"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(sealing.Unreadable, match="HEADRACE_SECRET_KEY_FALLBACKS"):
        sealing.open(sealed)


def test_it_refuses_what_was_tampered_with() -> None:
    with pytest.raises(sealing.Unreadable):
        sealing.open(sealing.seal("text")[:-5] + b"AAAAA")

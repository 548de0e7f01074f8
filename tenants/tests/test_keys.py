"""The text of an API key: made, checked, digested."""

import re

import pytest
from pytest_django import Settings

from headrace_core.writes import InvalidWrite
from tenants import keys


def test_it_mints_keys_of_the_agreed_shape_with_256_random_bits() -> None:
    minted = keys.mint()
    assert re.fullmatch(r"sk-hr-[0-9A-Za-z]{12}[0-9A-Za-z]{43}[0-9A-Za-z]{6}", minted.text)
    assert minted.text[6:18] == minted.public_id
    assert minted.hint == minted.text[-4:]
    assert 62**keys.SECRET_LENGTH > 2**256
    assert len({keys.mint().text for _ in range(100)}) == 100


def test_it_finds_the_public_id_of_a_minted_key_and_of_nothing_else() -> None:
    minted = keys.mint()
    assert keys.parse(minted.text) == minted.public_id
    other = "b" if minted.text[20] == "a" else "a"
    wrong = ["", "sk-hr-", minted.text[:-1], minted.text + "x", minted.text[:20] + other + minted.text[21:]]
    wrong += ["sk-" + "x" * 64, "\ud800" * keys.KEY_LENGTH, "é" * keys.KEY_LENGTH]
    assert [keys.parse(text) for text in wrong] == [None] * len(wrong)


def test_it_digests_under_the_secret_key_so_that_another_installation_cannot_use_a_copy(
    settings: Settings,
) -> None:
    text = keys.mint().text
    settings.SECRET_KEY = "a" * 50
    first = keys.digest(text)
    settings.SECRET_KEY = "b" * 50
    assert keys.digest(text) != first
    assert len(first) == 32
    settings.SECRET_KEY_FALLBACKS = ["a" * 50]
    assert keys.digests(text) == [keys.digest(text), first]


@pytest.mark.parametrize("text", ["", "\x00", "\ud800", "sk-“x”", "\U0001f600" * 1000, "x" * 65536])
def test_it_digests_any_text_a_client_may_send(text: str) -> None:
    assert len(keys.digest(text)) == 32


@pytest.mark.parametrize(
    "text", ["short", "x" * 23, "x" * 257, "with space " * 3, "ünicode" * 8, "tab\t" * 10, "\x00" * 30]
)
def test_it_refuses_a_chosen_secret_that_is_weak_or_cannot_be_sent(text: str) -> None:
    with pytest.raises(InvalidWrite) as refused:
        keys.adopt(text)
    assert text not in str(refused.value) or not text


def test_it_adopts_a_chosen_secret_and_keeps_the_id_of_a_minted_one() -> None:
    minted = keys.mint()
    assert keys.adopt(minted.text).public_id == minted.public_id
    chosen = keys.adopt("an-operators-own-secret-0001")
    assert chosen.digest == keys.digest("an-operators-own-secret-0001")
    assert "secret" not in repr(chosen)

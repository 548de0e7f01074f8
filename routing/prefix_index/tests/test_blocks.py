"""Blocks: equal beginnings give equal hashes, within one scope and key alone, and few of them whatever the length."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from routing.prefix_index.blocks import BOUNDS, FIRST_BLOCK, LONGEST, Chain, Hasher

HASHER = Hasher("secret")


def common(one: Chain, two: Chain) -> int:
    pairs = list(zip(one.hashes, two.hashes, strict=False))
    return next((place for place, (a, b) in enumerate(pairs) if a != b), len(pairs))


@given(shared=st.binary(max_size=9000), one=st.binary(max_size=600), two=st.binary(max_size=600))
def test_it_matches_just_the_blocks_of_the_common_beginning(shared: bytes, one: bytes, two: bytes) -> None:
    texts = shared + one, shared + two
    same = next((at for at in range(min(map(len, texts))) if texts[0][at] != texts[1][at]), min(map(len, texts)))
    chains = [HASHER.chain(text, "acme") for text in texts]
    assert common(*chains) == sum(bound <= same for bound in BOUNDS)


def test_it_separates_scopes_and_keys() -> None:
    text = b"x" * 4096
    chains = [HASHER.chain(text, "acme"), HASHER.chain(text, "globex"), HASHER.chain(text, "")]
    chains.append(Hasher("another").chain(text, "acme"))
    assert len({chain.hashes[0] for chain in chains}) == 4
    assert HASHER.chain(text, "acme") == chains[0]


def test_it_does_not_confuse_a_scope_with_the_text() -> None:
    assert not common(HASHER.chain(b"b" + b"x" * 4096, "a"), HASHER.chain(b"x" * 4096, "ab"))


def test_it_cuts_a_megabyte_into_about_a_hundred_blocks_of_bounded_share() -> None:
    assert len(BOUNDS) < 120
    assert BOUNDS[-1] == LONGEST
    assert all((end - start) <= max(FIRST_BLOCK, start / 16) for start, end in pairwise(BOUNDS))
    assert len(HASHER.chain(b"x" * (LONGEST + 5000), "acme").hashes) == len(BOUNDS)
    assert HASHER.chain(b"x" * 255, "acme").hashes == ()


def test_it_turns_blocks_into_tokens_and_back() -> None:
    chain = HASHER.chain(b"x" * 4000, "acme")
    assert chain.tokens(0, 1000) == 0
    assert chain.tokens(4, 1000) == 256
    assert chain.blocks(256, 1000) == 4
    assert chain.blocks(255, 1000) == 3
    assert chain.blocks(0, 1000) == 0

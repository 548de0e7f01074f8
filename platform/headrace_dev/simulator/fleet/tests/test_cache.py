"""The block cache: nothing is lost, what is in use stays, the least recently used goes first."""

import random

import pytest

from headrace_dev.simulator.fleet.cache import BlockCache


def held(cache: BlockCache, private: int = 0) -> int:
    return cache.free + cache.locked + cache.idle + private


def chain(name: str, blocks: int) -> list[int]:
    return [hash((name, k)) for k in range(blocks)]


def fill(cache: BlockCache, name: str, blocks: int) -> None:
    cache.take(blocks)
    cache.insert(chain(name, blocks), 0, blocks)
    cache.unlock(chain(name, blocks), blocks)


def test_it_finds_the_leading_blocks_it_has() -> None:
    cache = BlockCache(10)
    fill(cache, "a", 4)
    assert cache.match(chain("a", 4), 4) == 4
    assert cache.match(chain("a", 4), 3) == 3
    assert cache.match([*chain("a", 2), 7, *chain("a", 4)[3:]], 4) == 2
    assert cache.match(chain("b", 4), 4) == 0


def test_it_evicts_the_least_recently_used_from_its_end() -> None:
    cache = BlockCache(10)
    fill(cache, "a", 4)
    fill(cache, "b", 4)
    cache.lock(chain("a", 4), 0, 1)  # a's beginning is used again
    cache.unlock(chain("a", 4), 1)
    cache.take(6)  # 2 free, so 4 evicted: the rest of a, then b's end
    assert cache.evicted == 4
    assert cache.match(chain("a", 4), 4) == 1
    assert cache.match(chain("b", 4), 4) == 3


def test_it_never_evicts_what_is_in_use() -> None:
    cache = BlockCache(10)
    fill(cache, "a", 4)
    cache.lock(chain("a", 4), 0, 4)
    assert cache.available == 6
    with pytest.raises(ValueError, match="7 blocks wanted, 6 available"):
        cache.take(7)
    cache.take(6)
    assert cache.match(chain("a", 4), 4) == 4


def test_it_keeps_one_copy_of_what_two_computed() -> None:
    cache = BlockCache(10)
    cache.take(4)
    cache.take(4)
    cache.insert(chain("a", 4), 0, 4)
    cache.insert(chain("a", 4), 0, 4)
    assert (cache.free, cache.locked) == (6, 4)
    cache.unlock(chain("a", 4), 4)
    assert (cache.locked, cache.idle) == (4, 0)
    cache.unlock(chain("a", 4), 4)
    assert (cache.locked, cache.idle) == (0, 4)


@pytest.mark.parametrize("seed", range(5))
def test_it_loses_no_block_and_orphans_none(seed: int) -> None:
    """At random: every chain's cached blocks are a beginning of it, and the books balance."""
    source = random.Random(seed)
    cache = BlockCache(40)
    names = [chain("xyz"[k % 3], 12)[: 4 * (k % 3 + 1)] for k in range(9)]
    using: list[tuple[list[int], int]] = []
    for _ in range(400):
        if using and (source.random() < 0.5 or len(using) > 3):
            blocks, private = using.pop(source.randrange(len(using)))
            cache.unlock(blocks, len(blocks))
            cache.give(private)
        else:
            blocks = source.choice(names)
            known = cache.match(blocks, len(blocks))
            extra = source.randint(0, 3)
            idle = cache.idle_among(blocks, known)
            if cache.available - idle >= len(blocks) - known + extra:
                cache.lock(blocks, 0, known)
                cache.take(len(blocks) - known + extra)
                cache.insert(blocks, known, len(blocks))
                using.append((blocks, extra))
        assert held(cache, sum(private for _, private in using)) == cache.total
        for blocks in names:
            known = cache.match(blocks, len(blocks))
            assert not any(cache.match([block], 1) for block in blocks[known:])

"""Garbage collection of a process that serves for long: what it loaded at its start is not looked through again."""

import gc


def freeze_loaded() -> None:
    """Leave what is loaded by now out of every later collection, which then finds little to look at, and seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)

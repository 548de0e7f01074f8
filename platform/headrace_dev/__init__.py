"""Developers' tooling: benchmarks, fixtures, upstreams that do as they are told. Not part of an installation."""

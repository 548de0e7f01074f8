"""Benchmarks: `manage.py bench NAME`. One file a benchmark, a class in `registry`; every part it needs is its own."""

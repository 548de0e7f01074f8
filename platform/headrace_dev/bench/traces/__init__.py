"""Traces of requests to replay: their shape in a YAML file, their draws from a seed."""

from headrace_dev.bench.traces.generate import Asked, Trace, generate
from headrace_dev.bench.traces.shape import ROUTING, SLO, Shape, at_load, load

__all__ = ["ROUTING", "SLO", "Asked", "Shape", "Trace", "at_load", "generate", "load"]

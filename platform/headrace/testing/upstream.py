"""The scripted upstream for tests: engines.simulator.process says how to use it."""

from engines.simulator.process import ScriptedUpstream, prompt

__all__ = ["ScriptedUpstream", "prompt"]

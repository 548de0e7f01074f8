"""The scripted upstream for tests: headrace_dev.simulator.process says how to use it."""

from headrace_dev.simulator.process import ScriptedUpstream, prompt

__all__ = ["ScriptedUpstream", "prompt"]

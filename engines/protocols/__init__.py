"""The protocols by name. Adding one is a file here and a line below."""

from engines.protocols.base import Attempt, Protocol, Upstream
from engines.protocols.llamacpp import LlamaCpp
from engines.protocols.openai import OpenAI
from engines.protocols.sglang import SGLang
from engines.protocols.vllm import VLLM

__all__ = ["PROTOCOLS", "Attempt", "Protocol", "Upstream"]

PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol() for protocol in (SGLang, VLLM, LlamaCpp, OpenAI)}

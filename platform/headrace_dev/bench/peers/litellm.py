"""LiteLLM's proxy with one model, no keys and no database: the least it can do."""

import json
from pathlib import Path

from headrace.stack.part import Part
from headrace.stack.parts.http_probe import answers
from headrace.stack.ports import LOOPBACK
from headrace_dev.bench.peers import program

PROGRAM = program("litellm", "litellm")


class LiteLLM(Part):
    name = "litellm"
    ready_within = 180  # it imports for 10-20 s on an idle core
    stop_within = 2

    def __init__(self, port: int, upstream: str, model: str, folder: Path) -> None:
        self._port = port
        self._upstream = upstream
        self._model = model
        self._configuration = folder / "litellm.yaml"

    def prepare(self) -> None:
        target = {"model": f"openai/{self._model}", "api_base": f"{self._upstream}/v1", "api_key": "none"}
        document = {
            "model_list": [{"model_name": self._model, "litellm_params": target}],
            "litellm_settings": {"telemetry": False},
        }
        self._configuration.write_text(json.dumps(document))  # JSON is YAML

    def environment(self) -> dict[str, str]:
        return {
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks a server far away for prices
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # no keys: that is the comparison
            "LITELLM_LOG": "ERROR",
        }

    def command(self) -> list[str]:
        alone = ["env", "-u", "DATABASE_URL", "-u", "REDIS_URL"]  # it would use them
        listen = ["--host", LOOPBACK, "--port", str(self._port)]
        return [*alone, str(PROGRAM), *listen, "--config", str(self._configuration)]

    def is_ready(self, pid: int) -> bool:
        return answers(self._port, "/health/liveliness")

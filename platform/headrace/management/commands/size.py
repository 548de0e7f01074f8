"""`manage.py size`: from a workload to GPUs and a price. README of engines/sizing explains the arithmetic."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from engines.sizing import report
from engines.sizing.accelerators import accelerator, accelerator_names
from engines.sizing.alternatives import explore
from engines.sizing.answer import solve
from engines.sizing.asking import FIELDS, ask
from engines.sizing.cards import model, model_names
from engines.sizing.document import document
from engines.sizing.errors import SizingError
from engines.sizing.published import compare
from headrace.console.sizing.usage import measure

SWITCHES = {"mixed", "disaggregate", "dp_attention"}
HELP = {
    "model": "a bundled model (see --list)",
    "config": "a Hugging Face config.json instead of --model",
    "gpu": "a bundled accelerator (see --list)",
    "rate": "requests a second at the peak",
    "growth": "multiplies the rate",
    "prompt": "mean prompt tokens",
    "output": "mean output tokens",
    "prompt_cv": "deviation / mean of prompt lengths; 0: all equal",
    "output_cv": "deviation / mean of output lengths",
    "arrival_cv": "of the times between requests; 1: Poisson",
    "cached": "share of prompt tokens found in the prefix cache",
    "ttft_p99": "seconds",
    "tpot_p99": "seconds",
    "spare": "replicas beyond the need",
    "weights": "bf16, fp8, int4, mxfp4 or nvfp4; default: as published",
    "kv": "bf16 or fp8",
    "tp": "tensor parallel size, or auto",
    "pp": "pipeline parallel size",
    "dp_attention": "data-parallel attention in the tensor group",
    "chunk": "prefill tokens a step may carry",
    "mixed": "prefill chunks share steps with decoding",
    "memory_fraction": "of GPU memory for weights and KV",
    "speculate": "TOKENS:ACCEPTANCE, such as 4:0.7",
    "disaggregate": "separate prefill and decode pools",
    "interconnect": "GB/s one way per GPU, over the bundled figure",
    "network": "GB/s one way per GPU, over the bundled figure",
    "curve": "flat, office, consumer or 24 shares of the peak with commas",
    "gpu_hour": "price of a GPU-hour",
    "hosted_input": "hosted price per million input tokens",
    "hosted_output": "hosted price per million output tokens",
}


class Command(BaseCommand):
    help = "How many GPUs a workload needs, and what its tokens cost."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        for name, default in FIELDS.items():
            option = "--" + name.replace("_", "-")
            if name in SWITCHES:
                parser.add_argument(option, action="store_true", default=None, help=HELP[name])
            else:
                told = "" if default is None else f" (default {default})"
                parser.add_argument(option, default=None, help=HELP[name] + told)
        parser.add_argument(
            "--from-usage", metavar="TENANT|MODEL", help="take lengths, rate curve and cache share from it"
        )
        parser.add_argument("--days", type=float, default=14, help="how far back --from-usage looks (default 14)")
        parser.add_argument("--compare", action="store_true", help="what each lever would change, and what it costs")
        parser.add_argument("--json", action="store_true", help="one object with parameters and verdict")
        parser.add_argument("--list", action="store_true", help="the bundled models and accelerators")
        parser.add_argument("--published", action="store_true", help="predictions beside published measurements")

    def handle(self, *_: Any, **options: Any) -> None:
        if options["list"]:
            self.stdout.write(_listing())
            return
        if options["published"]:
            self.stdout.write(report.published_text(compare()))
            return
        given = {name: options[name] for name in FIELDS if options[name] is not None}
        try:
            measured = measure(options["from_usage"], days=options["days"]) if options["from_usage"] else None
            answer = solve(ask(measured.fields() | given, measured.told()) if measured else ask(given))
            others = explore(answer) if options["compare"] else None
        except SizingError as error:
            raise CommandError(str(error)) from error
        except (OSError, json.JSONDecodeError) as error:
            raise CommandError(f"--config: {error}") from error
        if options["json"]:
            self.stdout.write(json.dumps(document(answer, others), indent=2))
        else:
            self.stdout.write(report.answer_text(answer, others))


def _listing() -> str:
    models = [["model", "attention", "context"]]
    for name in model_names():
        arch = model(name).architecture
        models.append([name, arch.attention_kind, f"{arch.max_context:,}"])
    gpus = [["GPU", "memory", "bandwidth", "dense TFLOP/s"]]
    for name in accelerator_names():
        part = accelerator(name)
        rates = ", ".join(f"{form} {rate / 1e12:g}" for form, rate in part.flops.items())
        gpus.append([name, f"{part.memory_bytes / 2**30:.0f} GiB", f"{part.bandwidth / 1e12:.2f} TB/s", rates])
    return report.table(models, right=frozenset({2})) + "\n\n" + report.table(gpus, right=frozenset({1, 2}))

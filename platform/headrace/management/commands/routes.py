"""`manage.py routes explain MODEL`: why a given request goes where, as a web process would decide now."""

import asyncio
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace.console.explain.answers import Explanation
from headrace.console.explain.explaining import Question, Unexplained, explain
from headrace.gateway.errors import ApiError

NOT_SEEN = (
    "Not seen here, since only web processes know it: what they believe to be in each prefix cache (`cached` is 0), the"
    " averages they learned, replicas that were silent to a tenant, and breakers of other homes than this one's."
)


class Command(BaseCommand):
    help = "Explain where a request to a model would go: targets with their conditions, replicas with their scores."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        one = actions.add_parser("explain", help="why a request goes where")
        one.add_argument("model")
        one.add_argument("--tenant", default="")
        one.add_argument("--project", default="", help="its slug")
        one.add_argument("--key", default="", help="its public id")
        one.add_argument("--tier", default="", help="what x-headrace-tier would say")
        one.add_argument("--prompt-tokens", type=int, default=None)
        one.add_argument("--max-tokens", type=int, default=None)
        one.add_argument("--messages", metavar="FILE", help="a chat's JSON: its prompt, tools and media")
        one.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        body = b""
        try:
            if options["messages"]:
                body = Path(options["messages"]).read_bytes()
            question = Question(
                model=options["model"],
                tenant=options["tenant"],
                project=options["project"],
                key=options["key"],
                tier=options["tier"],
                prompt_tokens=options["prompt_tokens"],
                max_tokens=options["max_tokens"],
                body=body,
            )
            found = asyncio.run(explain(question))
        except OSError as error:
            raise CommandError(f"--messages: {error}") from error
        except (Unexplained, ApiError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(found.as_dict()) if options["json"] else _text(found))


def _text(found: Explanation) -> str:
    about = found.request
    lines = [
        f"{about['model']}: {about['prompt_tokens']} prompt tokens, {about['max_tokens']} at most to write,"
        f" {'+'.join(about['modalities'])}{', tools' if about['tools'] else ''}; policy {found.policy}",
        "",
    ]
    for number, target in enumerate(found.targets, 1):
        lines.append(f"{number}. {target['target']}: {target['verdict']}")
        for replica in target["replicas"]:
            kv = "-" if replica["kv_used"] is None else f"{replica['kv_used']:.0%}"
            score = "-" if replica["score"] is None else f"{replica['score']:+.3f}"
            over = ", over its share" if replica["is_over"] else ""
            over += "" if replica["breaker"] == "closed" else f", breaker {replica['breaker']}"
            over += "" if replica["left_out"] is None else f", left out: {replica['left_out']}"
            lines.append(
                f"   {replica['replica']:32} {replica['state']:9} score {score:>8}  cached {replica['overlap']:>7}"
                f"  load {replica['load']:>8}  found {replica['found']:>8}  unread {replica['unread']:>7}"
                f"  kv {kv:>4}{over}"
            )
    goes_to = f"nowhere: {found.rejection}" if found.goes_to is None else found.goes_to
    lines += ["", f"-> {goes_to}{', once it has room' if found.is_waiting else ''}", "", NOT_SEEN]
    return "\n".join(lines)

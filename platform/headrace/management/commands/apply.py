"""`manage.py apply FILE.yaml`: configuration as code."""

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from headrace.apply import ApplyError, apply_document
from headrace.command_line import operators_name


class Command(BaseCommand):
    help = (
        "Brings the configuration to what FILE says, in one transaction, and prints what changed; a second time, that "
        "is nothing. What the file does not name is left alone, never deleted; a route's targets and a key's models "
        "are replaced as a whole, and a limit set to null is lifted. A key without `secret` is minted and printed once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", default="-", help="a YAML file; - or none: standard input")
        parser.add_argument("--dry-run", action="store_true", help="print what would change and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        source = options["file"] if options["file"] != "-" else "standard input"
        try:
            result = apply_document(
                _read(options["file"]), source=source, actor=operators_name(), dry_run=options["dry_run"]
            )
        except ApplyError as error:
            raise CommandError(str(error)) from error
        for change in result.changes:
            self.stdout.write(change.told)
        for minted in result.minted:
            self.stdout.write(f"{minted.label}, shown this once: {minted.text}")
        if not result.changes:
            self.stdout.write("no changes")
        elif options["dry_run"]:
            self.stdout.write("dry run: nothing was written")


def _read(name: str) -> str:
    if name == "-" and sys.stdin.isatty():
        raise CommandError("name a file, or pipe a document in")
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{name}:{line}: not UTF-8") from error

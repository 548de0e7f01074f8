"""`python -m headrace.stack.setup`: migrate the database and bring in the demo. `manage.py up` runs it."""

import argparse
import os

import django
from django.conf import settings
from django.core.management import call_command


def main() -> None:
    parser = argparse.ArgumentParser(prog="headrace.stack.setup", description=__doc__)
    parser.add_argument("--engine", required=True)
    parser.add_argument("--engine-url", required=True, help="empty where no engine runs")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "headrace.settings")
    django.setup()
    from headrace.stack import demo  # noqa: PLC0415  (its models need Django set up)

    call_command("migrate", interactive=False, verbosity=1)
    demo.prepare(
        settings.HOME / "demo.json",
        url=f"http://127.0.0.1:{settings.PORT}",
        engine=options.engine,
        engine_url=options.engine_url,
    )


if __name__ == "__main__":
    main()

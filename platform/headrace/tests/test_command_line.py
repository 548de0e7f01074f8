"""What `manage.py` says where nothing runs, and that asking leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from headrace.stack.tests.running import clean_environment, free_port


def manage(home: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments, "--home", str(home)],
        cwd=settings.ROOT,
        env=clean_environment() | environment,
        input="tenants: {acme: {name: Acme, currency: EUR}}",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", ["usage --tenant acme", "export", "apply", "migrate"])
def test_it_says_in_a_line_that_the_database_is_away(tmp_path: Path, command: str) -> None:
    place = f"127.0.0.1:{free_port()}"
    url = f"postgresql://someone:secret-word@{place}/headrace"
    done = manage(tmp_path / "typo", *command.split(), DATABASE_URL=url, HEADRACE_SECRET_KEY="s" * 32)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"error: the database at {place} does not answer (Connection refused): no `manage.py up` runs"
    )
    assert str(tmp_path / "typo") in line
    assert "secret-word" not in line


def test_it_makes_no_home_for_a_question(tmp_path: Path) -> None:
    holds = manage(tmp_path / "typo", "holds", REDIS_URL=f"redis://127.0.0.1:{free_port()}/0")
    assert holds.returncode == 1
    assert "Redis does not answer" in holds.stderr
    assert manage(tmp_path / "typo", "size", "--list").returncode == 0
    assert not (tmp_path / "typo").exists()


def test_it_says_where_a_secret_would_come_from(tmp_path: Path) -> None:
    done = manage(tmp_path / "typo", "shell", "--no-imports", "-c", "from tenants import keys; keys.digest('x')")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no secret: set HEADRACE_SECRET_KEY")
    assert not (tmp_path / "typo").exists()

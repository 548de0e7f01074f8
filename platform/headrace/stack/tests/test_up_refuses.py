"""What `manage.py up` says where it cannot run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from headrace.stack import ports
from headrace.stack.tests.running import Up, clean_environment, free_port


def test_it_names_a_busy_port(tmp_path: Path) -> None:
    with ports.reserve() as other:
        other.listen()
        up = Up(tmp_path / "home", port=ports.number(other))
        assert up.wait_ended() == 1
    assert f"port {up.port} is in use" in up.output
    assert "Traceback" not in up.output


def test_it_names_a_home_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    up = Up(tmp_path / "file" / "home")
    assert up.wait_ended() == 1
    assert str(up.home) in up.output
    assert "Traceback" not in up.output


def test_it_names_a_missing_libgomp(tmp_path: Path) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "libgomp.so.1").write_text("")  # found first, and no library
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--home", str(tmp_path / "home"), "--port", str(free_port())],
        cwd=settings.ROOT,
        env=clean_environment() | {"LD_LIBRARY_PATH": str(libraries)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "needs the system library libgomp.so.1" in done.stderr
    assert "--engine none" in done.stderr


def test_it_names_a_full_disk(tmp_path: Path) -> None:
    command = f"mount -t tmpfs -o size=20m none {tmp_path} && exec {sys.executable} manage.py up --home {tmp_path}/home"
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a small disk")
    done = subprocess.run(
        [*unshare, "sh", "-c", f"{command} --port {free_port()}"],
        cwd=settings.ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert "is full: " in done.stderr


@pytest.mark.parametrize("port", [-1, 70000])
def test_it_takes_no_number_that_is_no_port(tmp_path: Path, port: int) -> None:
    up = Up(tmp_path / "home", port=port)
    assert up.wait_ended() != 0
    assert f"{port} is no port: 1 to 65535" in up.output
    assert "Traceback" not in up.output


@pytest.mark.parametrize(("name", "scheme"), [("DATABASE_URL", "postgresql"), ("REDIS_URL", "redis")])
def test_it_names_a_given_store_that_does_not_answer(tmp_path: Path, name: str, scheme: str) -> None:
    place = f"127.0.0.1:{free_port()}"
    up = Up(tmp_path / "home", environment={name: f"{scheme}://someone:secret-word@{place}/0"})
    assert up.wait_ended() == 1
    assert f"{name}: {place} does not answer" in up.output
    assert "secret-word" not in up.output
    assert "home  " not in up.output

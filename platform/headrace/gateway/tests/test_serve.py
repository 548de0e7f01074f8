"""HEADRACE_SERVE splits the web: the data plane alone, or the screens alone."""

from pathlib import Path

import httpx
import pytest

from headrace_dev.testing.web import WebProcess


@pytest.mark.parametrize(("serve", "api", "screens"), [("all", 401, 200), ("data", 401, 404), ("screens", 404, 200)])
def test_it_serves_its_half(committed: None, tmp_path: Path, serve: str, api: int, screens: int) -> None:
    web = WebProcess(tmp_path / "web.log", "uvicorn", HEADRACE_SERVE=serve)
    try:
        web.wait_ready()
        assert httpx.get(f"{web.url}/v1/models", trust_env=False).status_code == api
        assert httpx.get(f"{web.url}/account/login/", trust_env=False).status_code == screens
        assert httpx.get(f"{web.url}/healthz", trust_env=False).status_code == 200
    finally:
        web.stop()

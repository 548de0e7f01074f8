"""The sizing page in the admin: staff only, one arithmetic, honest refusals."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from engines.sizing.answer import solve
from engines.sizing.asking import ask
from headrace.console.sizing.tests.ledger import full_hour, write
from tenants.models import Tenant

pytestmark = pytest.mark.django_db
PAGE, ANSWER, LEVERS = "/admin/sizing/", "/admin/sizing/answer", "/admin/sizing/levers"
SOURCES = Path(__file__).parents[2] / "static" / "headrace" / "sizing"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_user("operator", is_staff=True))
    return client


@pytest.mark.parametrize("url", [PAGE, ANSWER, LEVERS])
def test_it_is_for_staff_only(client: Client, url: str) -> None:
    assert client.get(url).status_code == 302
    client.force_login(User.objects.create_user("alice"))
    assert client.get(url).status_code == 302


def test_it_shows_an_answer_before_any_script_runs(operator: Client) -> None:
    html = operator.get(PAGE).content.decode()
    expected = solve(ask({"ttft_p99": 1, "tpot_p99": 0.04, "gpu_hour": 2.5}))
    assert f"{expected.gpus} x h100" in html
    assert "131,072 bytes a token" in html
    assert 'name="rate" value="200"' in html


def test_it_recalculates_with_the_same_arithmetic(operator: Client) -> None:
    given = {"model": "qwen3-32b", "gpu": "h200", "rate": "30", "prompt": "4000", "output": "500", "gpu_hour": "3"}
    found = operator.get(ANSWER, given).json()
    expected = solve(ask(given))
    assert found["document"]["verdict"]["gpus"] == expected.gpus
    assert f"{expected.gpus} x h200" in found["html"]
    replicas, cost, memory = (found["charts"][name] for name in ("replicas", "cost", "memory"))
    assert replicas["peak"] == [30, expected.fleet.replicas]
    assert [pair[1] for pair in replicas["points"]] == sorted(pair[1] for pair in replicas["points"])
    assert cost["points"][-1][1] < cost["points"][0][1]
    assert sum(part[1] for part in memory["parts"]) == pytest.approx(memory["capacity"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "lama-3.1-8b"}, "did you mean"),
        ({"rate": "-1"}, "between"),
        ({"rate": "lots"}, "must be a number"),
        ({"model": "llama-3.1-70b", "gpu": "l4", "tp": "1"}, "GiB short"),
        ({"tpot_p99": "0.001"}, "cannot be met"),
    ],
)
def test_it_says_why_it_refuses(operator: Client, given: dict[str, str], words: str) -> None:
    refused = operator.get(ANSWER, given)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]
    assert operator.get(LEVERS, given).status_code == 400
    shown = operator.get(PAGE, given)
    assert shown.status_code == 200
    assert words in shown.content.decode()


def test_it_never_reads_a_file_a_browser_names(operator: Client) -> None:
    found = operator.get(ANSWER, {"config": "/etc/passwd"}).json()
    assert found["document"]["parameters"]["model"] == "llama-3.1-8b"


def test_it_tells_what_each_lever_changes(operator: Client) -> None:
    html = operator.get(LEVERS, {"ttft_p99": "1", "tpot_p99": "0.04"}).json()["html"]
    for change in ("FP8 weights", "separate prefill and decode pools", "speculative decoding"):
        assert change in html
    assert re.search(r">[\d.,]+ ms</td>\s*<td[^>]*>[\d.]+ ms</td>", html)  # in the units of the answer's own times


def test_it_starts_from_the_ledger(operator: Client) -> None:
    Tenant.objects.create(slug="acme", name="Acme", currency="EUR", time_zone="Europe/Paris")
    write(full_hour() - timedelta(days=1), 72)
    html = operator.get(PAGE, {"from_usage": "acme", "days": "7"}).content.decode()
    assert "from the ledger of tenant acme" in html
    assert 'name="prompt" value="1500"' in html
    assert 'name="rate" value="0.02"' in html
    assert "from the ledger</option>" in html
    assert "did you mean" in operator.get(PAGE, {"from_usage": "acmee"}).content.decode()


def test_it_runs_no_inline_script_and_asks_no_other_host(operator: Client) -> None:
    html = operator.get(PAGE).content.decode()
    own = html[html.index('id="sizing"') : html.rindex("sizing-start")]
    assert not re.search(r"\son\w+=|style=|<script(?! id=)", own)
    for path in SOURCES.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text, path.name


def test_it_escapes_what_it_repeats(operator: Client) -> None:
    html = operator.get(PAGE, {"model": "<script>alert(1)</script>"}).content.decode()
    assert "<script>alert(1)" not in html
    assert "alert(1)" in json.dumps(operator.get(ANSWER, {"model": "<script>alert(1)</script>"}).json())

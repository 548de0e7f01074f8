"""The alert rules name metrics that exist, with labels they have, and say what to do."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric

from billing.invoicing import overdue
from engines.load.figures import Fleet, Load, Need, Report, State
from headrace.gateway.process import metrics, shared_metrics

RULES = Path(__file__).parents[2] / "alerts.yml"
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
USAGE = {
    "headrace_usage_waiting",
    "headrace_usage_waiting_seconds",
    "headrace_dead_letters_total",
    "headrace_holds_aside",
}


def fleet() -> list[Metric]:
    load = Load(1, 2, 3, 0.5, 100, 0.5, 4, 5.0)
    report = Report(State.READY, is_up=True, at=1, load=load)
    picture = Fleet(1, {"main/r1": report}, {"main": Need(2, 1, 1)})
    return shared_metrics.of_fleet(picture, lambda name: load)


def known() -> dict[str, set[str]]:
    """Every metric of ours as Prometheus names it, with its labels."""
    found: dict[str, set[str]] = {name: set() for name in USAGE}
    for collector in list(REGISTRY._collector_to_names):
        names = [name for name in REGISTRY._collector_to_names[collector] if name.startswith("headrace_")]
        for name in names:
            if not name.endswith("_created"):
                found[name] = set(getattr(collector, "_labelnames", ()))
    waits = [overdue.Waits("acme", "2026-03", ["unpriced"], "words")]
    for family in fleet() + shared_metrics.of_worker({b"billing.invoices": b"1000 here"}, waits, b"2", now=5):
        for sample in family.samples:
            found[sample.name] = set(sample.labels)
    assert metrics.GOODPUT is not None
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_its_metrics_exist(rule: dict[str, Any]) -> None:
    metrics_known = known()
    named = re.findall(r"(headrace_[a-z_]+)(?:\{([a-z_]+)[=~])?", rule["expr"])
    assert named, rule["expr"]
    for name, label in named:
        assert name in metrics_known, name
        assert not label or label in metrics_known[name], (name, label)
    assert set(rule["annotations"]) == {"summary", "action"}
    assert rule["labels"]["severity"] in {"page", "warn"}


def test_it_says_what_to_do_about_retractions() -> None:
    [rule] = [rule for rule in rules() if rule["alert"] == "HeadraceRetractions"]
    assert "More replicas or tighter limits" in rule["annotations"]["action"]


def test_the_docs_name_every_metric_and_no_other() -> None:
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in known()}
    names = {name for name in names if name + "_total" not in names}
    rows = re.findall(r"^\| (`headrace_.*?) \|", PAGE.read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names

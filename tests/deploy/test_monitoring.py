"""Dashboards and alerts: every metric is one that a service registers, with the labels that are asked for, and every alert has a runbook."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from typing import Any

import pytest
import yaml

from tests.deploy.tools import CHART
from tests.support.paths import PACKAGE, ROOT

pytestmark = pytest.mark.req("KUB-2")

METRIC = re.compile(r"interlock_\w+")


SERIES = {"Counter": ("_total",), "Gauge": ("",), "Histogram": ("_bucket", "_sum", "_count")}


@cache
def registered() -> dict[str, list[str]]:
    """Return the series that the code registers, with their labels: read from every Counter, Gauge and Histogram that is made."""
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if "api" in path.relative_to(PACKAGE).parts or "interlock_" not in (text := path.read_text(encoding="utf-8")):
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in SERIES
                and len(node.args) > 1
            ):
                name, labels = (
                    ast.literal_eval(node.args[0]),
                    ast.literal_eval(node.args[2]) if len(node.args) > 2 else [],
                )
                found |= {name.removesuffix("_total") + end: labels for end in SERIES[node.func.id]}
    return found


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((CHART / "files" / "rules.yaml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return json.loads((CHART / "files" / "dashboards" / "interlock.json").read_text(encoding="utf-8"))["panels"]


def expressions() -> dict[str, str]:
    """Return every query by the name of its alert or panel."""
    drawn = {panel["title"]: target["expr"] for panel in panels() for target in panel["targets"]}
    return drawn | {rule["alert"]: rule["expr"] for rule in rules()}


@pytest.mark.parametrize("name", sorted(expressions()))
def test_every_metric_of_a_query_is_emitted(name):
    """A renamed metric would leave a panel empty and an alert silent for ever."""
    metrics = METRIC.findall(expressions()[name])

    assert metrics
    assert not [metric for metric in metrics if metric not in registered()]


@pytest.mark.parametrize("name", sorted(expressions()))
def test_every_label_of_a_query_is_one_of_its_metric(name):
    """Grouping by a label that a metric has not gives one nameless line."""
    text = expressions()[name]
    known = {label for metric in METRIC.findall(text) for label in registered().get(metric, ())} | {"le"}
    asked = {label.strip() for group in re.findall(r"by \(([^)]*)\)", text) for label in group.split(",")}
    asked |= set(re.findall(r"[{,](\w+)=~?", text)) | set(re.findall(r"[{,](\w+)!=", text))

    assert asked <= known


def test_a_metric_that_nobody_emits_is_noticed():
    """The comparison above finds what it is for."""
    assert "interlock_calls_that_never_were_total" not in registered()
    assert "interlock_requests_total" in registered()


def test_every_alert_has_its_runbook_and_every_runbook_its_alert():
    """What it means, what to look at, what to do."""
    page = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
    alerts = {rule["alert"] for rule in rules()}

    assert alerts == set(re.findall(r"^## (Interlock\w+)$", page, re.MULTILINE))
    for rule in rules():
        assert f"docs/runbooks.md#{rule['alert'].lower()}" == rule["annotations"]["runbook_url"]
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_the_panels_of_the_dashboard_are_told_apart():
    """Each has an id, a place and a title of its own."""
    for name in ("id", "title"):
        assert len({panel[name] for panel in panels()}) == len(panels())
    assert len({tuple(panel["gridPos"].items()) for panel in panels()}) == len(panels())

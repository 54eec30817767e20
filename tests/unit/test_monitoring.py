"""Rules, alerts and dashboards: Prometheus takes them, each alert is seen to fire and to stay quiet, all that they ask
for is there, and each alert leads to what to do."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from typing import Any

import pytest
import yaml
from doc_pages import ROOT
from expressions import MONITORING, expressions, names_in, recorded, rules

sys.path.insert(0, str(ROOT / "docs"))

from generator import markdown, metrics

ALERTS = {rule["alert"]: rule for rule in rules("alerts.yml")}
RUNBOOKS = ROOT / "docs" / "alerts.md"
OF_PROMETHEUS = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total"}  # and of its client's


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.needs("prometheus")
def test_prometheus_takes_its_configuration_and_the_rules() -> None:
    promtool("check", "config", "--syntax-only", "prometheus.yml")
    promtool("check", "rules", "rules/recording.yml", "rules/alerts.yml")


@pytest.mark.needs("prometheus")
def test_alerts_fire_and_are_quiet_as_they_should() -> None:
    promtool("test", "rules", "rules/tests.yml")


def test_every_alert_is_seen_to_fire_and_to_be_quiet() -> None:
    told: dict[str, set[bool]] = {}
    for test in yaml.safe_load((MONITORING / "rules" / "tests.yml").read_text())["tests"]:
        assert test["input_series"]
        for case in test["alert_rule_test"]:
            told.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
    assert told == {name: {True, False} for name in ALERTS}


def test_every_alert_leads_to_its_runbook() -> None:
    text = RUNBOOKS.read_text()
    headings = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{markdown.anchor(name)}"
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}
        assert rule["labels"]["severity"] in ("warning", "critical")


def known_series() -> set[str]:
    return {name for metric in metrics.all_metrics() for name in metric.series} | OF_PROMETHEUS | recorded()


@pytest.mark.parametrize(("where", "expression"), list(expressions()), ids=lambda text: str(text)[:60])
def test_every_metric_that_is_asked_for_is_there(where: str, expression: str) -> None:
    names = names_in(expression)
    assert names, f"{where}: asks for nothing"
    assert names <= known_series(), where


@pytest.mark.parametrize(("where", "expression"), list(expressions()), ids=lambda text: str(text)[:60])
def test_every_label_that_is_asked_for_is_there(where: str, expression: str) -> None:
    labels = {label for metric in metrics.all_metrics() for label in metric.labels} | {"le", "instance", "job"}
    asked = {label for part in re.findall(r"\bby \(([^)]*)\)", expression) for label in re.split(r",\s*", part)}
    asked |= set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression))
    assert asked <= labels, where


def test_no_recording_rule_is_made_for_nobody() -> None:
    asked = {name for where, expression in expressions() if where not in recorded() for name in names_in(expression)}
    assert recorded() <= asked


def test_the_dashboards_are_as_the_program_writes_them(capsys: pytest.CaptureFixture[str]) -> None:
    program: dict[str, Any] = runpy.run_path(str(MONITORING / "dashboards.py"))
    assert program["main"](["--check"]) == 0, capsys.readouterr().err


def test_names_keep_to_the_rules() -> None:
    """What promtool cannot see: that they are this project's, and that ratios and flows are not among them."""
    found = metrics.all_metrics()
    assert len({metric.name for metric in found}) == len(found)
    for metric in found:
        assert re.fullmatch(r"ces(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert not {"flow", "job", "path", "allocation"} & set(metric.labels), metric.name
        assert metric.help[0].isupper()
        assert not metric.help.endswith(".")


def test_prometheus_asks_every_service_of_the_stack() -> None:
    stack = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    asked = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    targets = {target: job for job in asked for each in job["static_configs"] for target in each["targets"]}
    told = {name for name, service in stack.items() if "CES_METRICS_TOKEN_FILE" in service.get("environment", {})}
    assert {target.removesuffix(":8080") for target in targets} == told
    assert told == {"manager", "scheduler", "compute-ctl", "network-ctl", "n1", "n2", "n3", "n4", "n5"}
    for target, job in targets.items():
        assert job["authorization"]["credentials_file"].startswith("/metrics/"), target
    assert targets["manager:8080"]["scheme"] == "https"
    agents = [job for target, job in targets.items() if target.startswith("n") and "-" not in target]
    assert len({job["authorization"]["credentials_file"] for job in agents}) == 5


@pytest.mark.needs("compose")
def test_compose_takes_the_file_beside_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from compose_stack import compose_command

    files = ["-f", "docker-compose.yml", "-f", "docker-compose.monitoring.yml", "config"]
    monkeypatch.delenv("CES_GRAFANA_PASSWORD", raising=False)
    refused = subprocess.run([*compose_command(), *files], cwd=ROOT, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "CES_GRAFANA_PASSWORD" in refused.stderr
    monkeypatch.setenv("CES_GRAFANA_PASSWORD", "chosen")
    told = subprocess.run([*compose_command(), *files], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    services = yaml.safe_load(told.stdout)["services"]
    for name in ("prometheus", "grafana"):
        assert all(
            str(port).startswith("127.0.0.1:") or port.get("host_ip") == "127.0.0.1" for port in services[name]["ports"]
        )
    assert set(services["grafana"]["networks"]) == {"monitoring"}

"""What Prometheus and Grafana are told to ask for: the expressions of rules and dashboards, and the metrics in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MONITORING = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
INTERVAL = "$__rate_interval"  # which Grafana fills in
_NAME = re.compile(r"\b(?:ces[:_]|process_|python_|up\b)[a-z0-9_:]*")
_TEXT = re.compile(r'"[^"]*"')


def rules(file: str) -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "rules" / file).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> set[str]:
    """The names that recording rules make."""
    return {rule["record"] for rule in rules("recording.yml")}


def expressions() -> Iterator[tuple[str, str]]:
    """Where an expression stands, and the expression."""
    for file in ("recording.yml", "alerts.yml"):
        for rule in rules(file):
            yield rule.get("alert") or rule["record"], rule["expr"]
    for path in sorted((MONITORING / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"].replace(INTERVAL, "5m")


def names_in(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    return set(_NAME.findall(_TEXT.sub("", expression)))

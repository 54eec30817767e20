"""Every metric of every service, from the code that counts it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ces_common.tls.ends import METRIC
from ces_manager.certificate_ends import WHO
from ces_manager.live.cluster_metrics import LINK_LABELS, NODE_LABELS, OF_LINKS, OF_NODES, Told
from generator.markdown import code, table

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "Counter": "counter",
    "Metric": "counter",
    "Gauge": "gauge",
    "Histogram": "histogram",
    "GaugeMetricFamily": "gauge",
    "CounterMetricFamily": "counter",
}
# Of ces_common: which services count it. What is not named, all of them do.
SHARED = {
    "spec_store": "compute-ctl, network-ctl",
    "state_reader": "scheduler, compute-ctl, network-ctl",
}
EVERYBODY = "all"


@dataclass(frozen=True)
class Metric:
    """``name``: with ``_total`` for a counter, as it is asked for."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    service: str

    @property
    def series(self) -> set[str]:
        """The names under which it can be asked for."""
        if self.kind == "histogram":
            return {f"{self.name}_{part}" for part in ("bucket", "sum", "count")}
        return {self.name}


@cache
def all_metrics() -> tuple[Metric, ...]:
    """Raises ValueError for one that is made in a way that cannot be read here."""
    found = list(_of_tables())
    for file in sorted([*ROOT.glob("libs/ces_common/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]):
        found += _made_in(file)
    return tuple(sorted(found, key=lambda metric: (metric.service != EVERYBODY, metric.service, metric.name)))


def tables() -> str:
    services = list(dict.fromkeys(metric.service for metric in all_metrics()))
    parts = []
    for service in services:
        rows = [
            (code(metric.name) + _braces(metric), metric.kind, metric.help)
            for metric in all_metrics()
            if metric.service == service
        ]
        heading = "Every service" if service == EVERYBODY else service
        parts.append(f"### {heading}\n\n" + table(("metric", "kind", "tells"), rows))
    return "\n\n".join(parts)


def _braces(metric: Metric) -> str:
    return " " + ", ".join(code(label) for label in metric.labels) if metric.labels else ""


def _of_tables() -> Iterator[Metric]:
    for told, labels in ((OF_NODES, NODE_LABELS), (OF_LINKS, LINK_LABELS)):
        for name, each in told.items():
            yield Metric(name, _kind(each), labels, each.help, "manager")


def _kind(told: Told) -> str:
    return "counter" if told.total else "gauge"


def _made_in(file: Path) -> Iterator[Metric]:
    tree = ast.parse(file.read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    if not any(module.startswith("prometheus_client") for module in imported):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS and node.args:
            metric = _metric(node, node.func.id, file)
            if metric is not None:
                yield metric


def _metric(call: ast.Call, made_by: str, file: Path) -> Metric | None:
    """None for what is none, or is one of a table."""
    first, service = call.args[0], _service(file)
    if isinstance(first, ast.Name) and first.id == "METRIC":
        return Metric(METRIC, "gauge", tuple(WHO), ast.literal_eval(call.args[1]), service)
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return None
    given = call.args[2] if len(call.args) > 2 else next((k.value for k in call.keywords if k.arg == "labels"), None)
    labels = tuple(ast.literal_eval(given)) if given is not None else ()
    return Metric(first.value, KINDS[made_by], labels, ast.literal_eval(call.args[1]), service)


def _service(file: Path) -> str:
    parts = file.relative_to(ROOT).parts
    return parts[1] if parts[0] == "services" else SHARED.get(file.stem, EVERYBODY)

"""Write the Grafana dashboards beside this file: ``python deploy/monitoring/dashboards.py [--check]``.

``--check`` writes nothing and ends with 1 where one is out of date.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "dashboards"
SOURCE = {"type": "prometheus", "uid": "ces"}
WIDE, TALL = 12, 8  # of Grafana's 24 columns, and of its rows


@dataclass(frozen=True)
class Panel:
    """``curves``: expression -> legend. ``unit``: as Grafana names it."""

    title: str
    curves: dict[str, str]
    unit: str = "short"
    stat: bool = False


def p95(metric: str, by: str = "") -> str:
    labels = ", ".join(["le", *([by] if by else [])])
    return f"histogram_quantile(0.95, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"


OVERVIEW = [
    Panel("Jobs", {"ces:jobs:count": "{{state}}"}),
    Panel("Nodes away", {"count(max by (node) (ces_node_up) == 0) or vector(0)": "nodes"}, stat=True),
    Panel("Links down", {"count(max by (src, dst) (ces_link_up) == 0) or vector(0)": "links"}, stat=True),
    Panel("First in line waits", {"max by (tenant) (ces_queue_oldest_wait_seconds)": "{{tenant}}"}, "s"),
    Panel("Wait for a place", {"ces:job_queue_wait_seconds:p95_1h": "95 % within"}, "s"),
    Panel("Time in a state", {p95("ces_job_phase_seconds", "state"): "{{state}}"}, "s"),
    Panel("Ends", {"sum by (state) (rate(ces_jobs_finished_total[$__rate_interval]))": "{{state}}"}, "ops"),
    Panel("Moves", {"sum by (cause) (increase(ces_jobs_rescheduled_total[$__rate_interval]))": "{{cause}}"}),
    Panel(
        "Held",
        {"ces:node_cpu_allocated:ratio": "CPU", "ces:node_memory_allocated:ratio": "memory"},
        "percentunit",
    ),
    Panel("Decisions", {p95("ces_decision_seconds", "outcome"): "{{outcome}}, 95 % within"}, "s"),
    Panel(
        "Plans rejected", {"sum by (reason) (rate(ces_plans_rejected_total[$__rate_interval]))": "{{reason}}"}, "ops"
    ),
    Panel(
        "Proposals",
        {"sum by (kind, outcome) (rate(ces_proposals_total[$__rate_interval]))": "{{kind}} {{outcome}}"},
        "ops",
    ),
]
NETWORK = [
    Panel("Links that are used most", {"topk(10, ces:link_used:ratio)": "{{src}} -> {{dst}}"}, "percentunit"),
    Panel("Links that are promised most", {"topk(10, ces:link_reserved:ratio)": "{{src}} -> {{dst}}"}, "percentunit"),
    Panel("Carried", {"sum(max by (src, dst) (ces_link_used_bytes_per_second))": "all links"}, "Bps"),
    Panel("Promised", {"sum(max by (src, dst) (ces_link_reserved_bytes_per_second))": "all links"}, "Bps"),
    Panel(
        "Measured below what is configured",
        {
            "max by (src, dst) (ces_link_measured_bytes_per_second < ces_link_bytes_per_second)": "{{src}} -> {{dst}}",
        },
        "Bps",
    ),
    Panel(
        "Longest round trips", {"topk(10, max by (src, dst) (ces_link_round_trip_seconds))": "{{src}} -> {{dst}}"}, "s"
    ),
    Panel(
        "Dropped packets",
        {"topk(10, max by (src, dst) (rate(ces_link_dropped_packets_total[$__rate_interval])))": "{{src}} -> {{dst}}"},
        "pps",
    ),
    Panel(
        "Damaged packets",
        {"topk(10, max by (src, dst) (rate(ces_link_damaged_packets_total[$__rate_interval])))": "{{src}} -> {{dst}}"},
        "pps",
    ),
    Panel("CPU used", {"topk(10, max by (node) (ces_node_cpu_used_cores))": "{{node}}"}),
    Panel("Memory used", {"topk(10, max by (node) (ces_node_memory_used_bytes))": "{{node}}"}, "bytes"),
    Panel("Silent for", {"topk(10, min by (node) (ces_node_heartbeat_age_seconds))": "{{node}}"}, "s"),
    Panel(
        "GPUs",
        {"sum(max by (node) (ces_node_gpus_allocated))": "held", "sum(max by (node) (ces_node_gpus))": "offered"},
    ),
]
SERVICES = [
    Panel("Ready", {"min by (instance) (ces_ready)": "{{instance}}"}),
    Panel("Versions", {"count by (service, version) (ces_build_info)": "{{service}} {{version}}"}),
    Panel("Duties", {"max by (duty, instance) (ces_duty_held) > 0": "{{duty}}: {{instance}}"}),
    Panel("Transactions", {p95("ces_database_transaction_seconds", "kind"): "{{kind}}, 95 % within"}, "s"),
    Panel("Wait for a transaction's turn", {"ces:database_wait_seconds:p99_5m": "{{kind}}, 99 % within"}, "s"),
    Panel("Requests", {"sum by (route) (rate(ces_http_requests_total[$__rate_interval]))": "{{route}}"}, "reqps"),
    Panel("Answers", {p95("ces_http_request_seconds", "route"): "{{route}}, 95 % within"}, "s"),
    Panel("Requests that fail", {"ces:http_failures:ratio_5m": "5xx"}, "percentunit"),
    Panel("Messages that wait", {"max by (consumer) (ces_consumer_pending_messages)": "{{consumer}}"}),
    Panel("Dead letters", {"sum by (consumer) (increase(ces_dead_letters_total[$__rate_interval]))": "{{consumer}}"}),
    Panel(
        "Events",
        {
            "sum(rate(ces_events_published_total[$__rate_interval]))": "published",
            "sum(rate(ces_heartbeats_total[$__rate_interval]))": "heartbeats",
        },
        "ops",
    ),
    Panel(
        "Documents written",
        {"sum by (kind) (rate(ces_desired_documents_written_total[$__rate_interval]))": "{{kind}}"},
        "ops",
    ),
    Panel("Reconciling", {p95("ces_agent_reconcile_seconds", "what"): "{{what}}, 95 % within"}, "s"),
    Panel("Workers", {"sum by (state) (ces_agent_workers)": "{{state}}"}),
    Panel("Memory", {"process_resident_memory_bytes": "{{instance}}"}, "bytes"),
    Panel("CPU", {"rate(process_cpu_seconds_total[$__rate_interval])": "{{instance}}"}),
]
DASHBOARDS = {
    "overview": ("CES: jobs", OVERVIEW),
    "network": ("CES: nodes and links", NETWORK),
    "services": ("CES: services", SERVICES),
}


def dashboard(name: str, title: str, panels: list[Panel]) -> dict[str, Any]:
    """As Grafana imports it: two panels side by side."""
    return {
        "uid": f"ces-{name}",
        "title": title,
        "tags": ["ces"],
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "panels": [_panel(number, panel) for number, panel in enumerate(panels)],
    }


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": number + 1,
        "title": panel.title,
        "type": "stat" if panel.stat else "timeseries",
        "datasource": SOURCE,
        "gridPos": {"x": number % 2 * WIDE, "y": number // 2 * TALL, "w": WIDE, "h": TALL},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(panel.curves.items())
        ],
    }


def expected_files() -> dict[Path, str]:
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard(name, title, panels), indent=1) + "\n"
        for name, (title, panels) in DASHBOARDS.items()
    }


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python deploy/monitoring/dashboards.py [--check]", file=sys.stderr)
        return 2
    expected = expected_files()
    stale = [path for path, text in expected.items() if not path.exists() or path.read_text() != text]
    stale += sorted(set(FOLDER.glob("*.json")) - expected.keys())
    if arguments:
        for path in stale:
            print(f"{path.name} is out of date: run `python deploy/monitoring/dashboards.py`", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for path in stale:
        if path in expected:
            path.write_text(expected[path])
        else:
            path.unlink()
        print(f"{'wrote' if path in expected else 'removed'} {path.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

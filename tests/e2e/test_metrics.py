"""Metrics of a whole cluster: each service tells what the documentation says, to whom it should, and Prometheus makes
of it what rules and dashboards ask for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from doc_pages import ROOT
from expressions import expressions, names_in, recorded
from fault_cluster import FaultCluster, recorded_job, wait_for
from prometheus_client.parser import text_string_to_metric_families
from prometheus_server import lint, running_prometheus, shipped_config

from ces_common.messages.identities import NewAccessToken
from ces_common.roles import Role
from ces_testbed.services import CONTROLLERS, MANAGER, agent_name

sys.path.insert(0, str(ROOT / "docs"))

from generator import metrics

pytestmark = pytest.mark.needs("root")
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end='')"


def ask(cluster: FaultCluster, service: str, token: str | None, accept: str = "") -> httpx.Response:
    layout = cluster.cluster.layout
    headers = {"Accept": accept} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    url = f"{layout.url(service)}/metrics"
    return httpx.get(url, headers=headers, timeout=10, trust_env=False, verify=layout.tls() or False)


def told_by_agent(cluster: FaultCluster, node: str) -> str:
    """What an agent tells its own machine: it listens there alone."""
    log = cluster.cluster.files.log(agent_name(node)).read_text()
    port = re.findall(r'"port": (\d+)[^\n]*"http listening"|"http listening"[^\n]*"port": (\d+)', log)[-1]
    url = f"http://127.0.0.1:{''.join(port)}/metrics"
    space = f"ces-{cluster.cluster.spec.name}-{node}"
    command = ["ip", "netns", "exec", space, sys.executable, "-c", ASK, url]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout


def families(text: str) -> dict[str, tuple[str, set[str]]]:
    """Of a text: the metrics of this project, each with its kind and its labels, as far as there are series."""
    found = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("ces_"):
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            found[name] = (family.type, labels)
    return found


def samples(cluster: FaultCluster, token: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """What the manager tells now, by name and labels in order of their names."""
    read = text_string_to_metric_families(ask(cluster, MANAGER, token).text)
    return {(each.name, tuple(sorted(each.labels.items()))): each.value for family in read for each in family.samples}


@pytest.fixture
def token(cluster: FaultCluster) -> str:
    return cluster.cluster.files.metrics_token.read_text().strip()


@pytest.fixture
def busy(cluster: FaultCluster) -> None:
    """Something has happened: a job came, ran and ended."""
    cluster.finish(cluster.submit(recorded_job("counted", 1, "0", replicas=2)))


def test_every_service_tells_what_the_documentation_says(cluster: FaultCluster, token: str, busy: None) -> None:
    texts = {service: ask(cluster, service, token).text for service in (MANAGER, *CONTROLLERS)}
    texts["edge-agent"] = told_by_agent(cluster, "n1")
    documented = metrics.all_metrics()
    for service, text in texts.items():
        assert lint(text) == "", service
        expected = {
            each.name: each for each in documented if each.service == "all" or service in each.service.split(", ")
        }
        found = families(text)
        assert found.keys() == expected.keys(), service
        for name, (kind, labels) in found.items():
            assert kind == expected[name].kind, name
            assert not labels or labels == set(expected[name].labels), name


def test_a_job_is_counted_where_it_went(cluster: FaultCluster, token: str, busy: None) -> None:
    ended = "ces_jobs", (("state", "succeeded"), ("tenant", "default"))
    wait_for(lambda: samples(cluster, token).get(ended, 0) >= 1, "the job that ended is told of")
    found = samples(cluster, token)
    assert found["ces_jobs_finished_total", (("state", "succeeded"),)] >= 1
    assert found["ces_job_queue_wait_seconds_count", ()] >= 1
    assert found["ces_proposals_total", (("kind", "plan"), ("outcome", "committed"))] >= 1
    assert found["ces_node_up", (("node", "n1"),)] == 1
    assert found["ces_link_bytes_per_second", (("dst", "s1"), ("src", "n1"))] == 100e6 / 8
    routes = {labels["route"] for labels in (dict(key[1]) for key in found if key[0] == "ces_http_requests_total")}
    assert "/v1/jobs/{job}" in routes
    assert not [route for route in routes if re.search(r"[0-9A-Z]{26}", route)]


def test_who_is_no_operator_is_told_nothing(cluster: FaultCluster, token: str) -> None:
    for service in (MANAGER, *CONTROLLERS):
        for wrong in (None, "a-token-that-was-guessed"):
            refused = ask(cluster, service, wrong)
            assert refused.status_code == 401, service
            assert "ces_" not in refused.text
    made: dict[Role, NewAccessToken] = {}
    for role in (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR):
        tenants = ["default"] if role.has_tenants else []
        made[role] = cluster.client.tokens.create(f"metrics-{role}", role, tenants=tenants)
    try:
        for role, status in ((Role.VIEWER, 403), (Role.SUBMITTER, 403), (Role.OPERATOR, 200)):
            assert ask(cluster, MANAGER, made[role].token).status_code == status
            assert ask(cluster, CONTROLLERS[0], made[role].token).status_code == 401
    finally:
        for role in made:
            cluster.client.tokens.revoke(f"metrics-{role}")


def test_the_token_for_metrics_opens_nothing_else(cluster: FaultCluster, token: str) -> None:
    layout = cluster.cluster.layout
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/v1/jobs", "/v1/nodes", "/v1/whoami", "/v1/metrics", "/metrics/"):
        answer = httpx.get(
            layout.api_url + path, headers=headers, timeout=10, trust_env=False, verify=layout.tls() or False
        )
        assert answer.status_code == 401, path


def test_openmetrics_for_who_asks_for_it(cluster: FaultCluster, token: str) -> None:
    told = ask(cluster, MANAGER, token, "application/openmetrics-text;version=1.0.0")
    assert told.headers["content-type"].startswith("application/openmetrics-text")
    assert told.text.endswith("# EOF\n")


@pytest.mark.needs("prometheus")
def test_prometheus_reads_the_cluster_and_works_out_its_rules(
    cluster: FaultCluster, token: str, busy: None, tmp_path: Path
) -> None:
    layout = cluster.cluster.layout
    credentials = {"credentials_file": str(cluster.cluster.files.metrics_token)}
    config = shipped_config(
        {
            "ces-manager": {
                "tls_config": {"ca_file": str(layout.authority)},
                "authorization": credentials,
                "static_configs": [{"targets": [f"{layout.host}:{layout.port(MANAGER)}"]}],
            },
            "ces-controllers": {
                "authorization": credentials,
                "static_configs": [{"targets": [f"{layout.host}:{layout.port(name)}" for name in CONTROLLERS]}],
            },
        }
    )
    with running_prometheus(tmp_path, config) as prometheus:
        wait_for(lambda: len(prometheus.ask("up == 1")) == 4, "all targets are up")
        assert {target["health"] for target in prometheus.targets()} == {"up"}
        wait_for(lambda: bool(prometheus.ask("ces:jobs:count")), "the first rule is worked out")
        wait_for(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()), "all rules are worked out")
        assert {rule["name"] for rule in prometheus.rules()} >= recorded()
        assert float(prometheus.ask('ces:jobs:count{state="succeeded"}')[0]["value"][1]) >= 1
        assert len(prometheus.ask("ces:link_reserved:ratio")) == 8
        for _, expression in expressions():
            prometheus.ask(expression)
        # Those of agents, which listen on their own machines, and those that nothing has set off here, have no series.
        here = {name for _, expression in expressions() for name in names_in(expression)}
        there = {name for name in here if prometheus.ask(f"count({name})")}
        assert {"ces_node_up", "ces_link_up", "ces_ready", "ces_build_info", "ces_duty_held"} <= there
        firing = prometheus.ask('ALERTS{alertstate="firing"}')
        assert firing == [], json.dumps(firing)

"""Certificates while jobs run: they are renewed and nobody notices, and who has none that is good gets nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for
from nats_process import NatsServer

from ces_testbed.spec import free_port

LIFE_S = 24.0


def shown(cluster: FaultCluster, port: int) -> str:
    """The serial number of the certificate that a server of the cluster shows now."""
    layout = cluster.cluster.layout
    tls = layout.tls()
    assert tls is not None
    with (
        socket.create_connection((layout.host, port), timeout=10) as plain,
        tls.wrap_socket(plain, server_hostname=layout.host) as checked,
    ):
        return str((checked.getpeercert() or {})["serialNumber"])


def await_renewals(cluster: FaultCluster, port: int) -> None:
    seen = {shown(cluster, port)}

    def renewed() -> bool:
        seen.add(shown(cluster, port))
        return len(seen) > 2

    wait_for(renewed, f"port {port} has shown three certificates")


def test_no_worker_feels_that_certificates_are_renewed(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fltt")
    days = {"CES_CERTIFICATE_DAYS": str(LIFE_S / 86400)}
    with running("fltt", folder, star(2), settings=days) as cluster:
        hold = folder / "hold"
        hold.touch()
        job = cluster.submit(recorded_job("stays", 1, "0", hold, replicas=2))
        cluster.await_state(job, "running")
        for server in (cluster.cluster.layout.ports.api, cluster.cluster.layout.ports.nats):
            await_renewals(cluster, server)
        hold.unlink()
        view = cluster.finish(job)
        assert (view.attempt, view.restarts) == (1, 0)
        services = (*cluster.cluster.layout.controllers, "manager", *(f"agent-{node}" for node in cluster.nodes))
        logs = [cluster.cluster.files.log(service).read_text() for service in services]
        assert not [line for log in logs for line in log.splitlines() if "disconnected" in line]
        cluster.check()


@contextmanager
def bare_broker(folder: Path, host: str, port: int) -> Iterator[str]:
    """A nats-server without any authentication; gives where it tells what became of its clients."""
    monitor = free_port(host, {port})
    config = f"host: {json.dumps(host)}\nport: {port}\nhttp: {json.dumps(f'{host}:{monitor}')}\n"
    with NatsServer(folder, config):
        yield f"http://{host}:{monitor}"


def test_a_bare_broker_in_the_true_ones_place_gets_nothing(cluster: FaultCluster, tmp_path: Path) -> None:
    """Nobody speaks to it, so it can order nothing; once the true one is back, all goes on as before."""
    job = cluster.submit(recorded_job("goes-on", 5))
    cluster.await_state(job, "running")
    layout = cluster.cluster.layout
    cluster.cluster.kill("nats", stay_down=True)
    try:
        with bare_broker(tmp_path, layout.host, layout.ports.nats) as monitor:

            def told(what: str) -> dict[str, Any]:
                answer: dict[str, Any] = httpx.get(f"{monitor}/{what}", trust_env=False, timeout=10).json()
                return answer

            everybody = len(cluster.cluster.spec.topology.nodes) + len(layout.managers) + len(layout.controllers)
            wait_for(lambda: told("varz")["total_connections"] > 2 * everybody, "all have tried, some again")
            assert told("varz")["in_msgs"] == 0
            clients = told("connz?state=all&limit=10000")["connections"]
            assert not [client for client in clients if client.get("name") or client["subscriptions"]]
    finally:
        cluster.cluster.restart("nats")
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)

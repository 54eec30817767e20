"""One service after the other is away for longer than every deadline and the lease: no job that was well fails, no
message is given up, and everything goes on by itself once the service is back.

``make soak`` has each of them away for ten minutes (``CES_OUTAGE_S``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from fault_cluster import FaultCluster, recorded_job, running, star
from postgres_container import postgres_server
from waiting import wait_for

from ces_common import subjects

AWAY_S = float(os.environ.get("CES_OUTAGE_S", "32"))
DEADLINE_S = 12
DEADLINES = {f"CES_{state}_DEADLINE_S": str(DEADLINE_S) for state in ("PLANNED", "PREPARING", "STARTING")}
PATIENCE_S = AWAY_S + 240  # a job that is placed again lives its whole life once more
REACHED = {"scheduler", "network-ctl", "compute-ctl", "nats"}
"""Those that can be away while users' requests are answered."""
SHORT = "nats"  # the one that `make test` has away
SERVICES = [
    pytest.param(name, marks=[] if name == SHORT else [pytest.mark.soak]) for name in sorted({*REACHED, "manager"})
]


def dead_letters(cluster: FaultCluster) -> int:
    """How many messages were given up, as the broker tells."""
    layout = cluster.cluster.layout
    url = f"http://{layout.host}:{layout.ports.nats_monitor}/jsz?streams=true"
    [account] = httpx.get(url, timeout=10, trust_env=False).json()["account_details"]
    kept = {stream["name"]: int(stream["state"]["messages"]) for stream in account["stream_detail"]}
    return kept[subjects.DEAD_STREAM]


def outlives_an_outage(
    cluster: FaultCluster, leave: Callable[[], object], back: Callable[[], object], *, asks: bool
) -> None:
    """``asks``: whether users are answered meanwhile."""
    lasting = cluster.submit(recorded_job("lasting", AWAY_S + 5, replicas=2, disconnect="keep"))
    usual = cluster.submit(recorded_job("usual", AWAY_S / 2, replicas=2))
    brittle = cluster.submit(recorded_job("brittle", AWAY_S / 2, replicas=2, disconnect="stop"))
    jobs = [lasting, usual, brittle]
    for job in jobs:
        cluster.await_state(job, "running")
    jobs.append(cluster.submit(recorded_job("fresh", 1, replicas=2)))
    leave()
    began = time.monotonic()
    if asks:
        jobs.append(cluster.submit(recorded_job("meanwhile", 1, replicas=2)))
    wait_for(lambda: time.monotonic() - began > AWAY_S, "the outage is over", AWAY_S + 10, pause_s=0.5)
    back()
    views = {view.name: view for view in (cluster.finish(job, PATIENCE_S) for job in jobs)}
    assert {name: view.restarts for name, view in views.items()} == dict.fromkeys(views, 0)
    assert views["lasting"].attempt == 1, "it goes on, whoever is away"
    assert dead_letters(cluster) == 0
    cluster.check()


@pytest.mark.timeout(2 * AWAY_S + 600)
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_away(tmp_path: Path, service: str) -> None:
    with running(f"out{service[:2]}", tmp_path, star(3), network="none", settings=DEADLINES) as cluster:
        outlives_an_outage(
            cluster,
            lambda: cluster.cluster.kill(service, stay_down=True),
            lambda: cluster.cluster.restart(service),
            asks=service in REACHED,
        )


@pytest.mark.timeout(2 * AWAY_S + 600)
@pytest.mark.needs("postgres")
def test_the_database_is_away(tmp_path: Path) -> None:
    with (
        postgres_server() as server,
        running("outdb", tmp_path, star(3), network="none", settings=DEADLINES, database_url=server.url) as cluster,
    ):
        outlives_an_outage(cluster, server.kill, server.start_again, asks=False)

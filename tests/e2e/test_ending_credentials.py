"""Agents whose credentials end again and again renew them, and nobody else notices."""

from __future__ import annotations

import time

import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for

from ces_common.natsauth import read_credentials
from ces_common.natsauth.jwt import claims_of

LIFE_S = 12.0


def held(cluster: FaultCluster) -> dict[str, str]:
    """The credential that each agent would start with now."""
    return {
        node: read_credentials(cluster.cluster.files.agent(node) / "nats.creds").jwt for node in cluster.nodes
    }  # fmt: skip


def test_no_worker_feels_that_credentials_end(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("fltc")
    days = {"CES_CREDENTIAL_DAYS": str(LIFE_S / 86400)}
    with running("fltc", folder, star(2), settings=days) as cluster:
        hold = folder / "hold"
        hold.touch()
        job = cluster.submit(recorded_job("stays", 1, "0", hold, replicas=2))
        cluster.await_state(job, "running")
        first = held(cluster)
        ended = max(claims_of(jwt)["exp"] for jwt in first.values()) + LIFE_S
        wait_for(lambda: time.time() > ended, "the first credentials, and the next, have ended")
        assert all(jwt != first[node] for node, jwt in held(cluster).items())
        hold.unlink()
        view = cluster.finish(job)
        assert (view.attempt, view.restarts) == (1, 0)
        logs = [cluster.cluster.files.log(f"agent-{node}").read_text() for node in cluster.nodes]
        assert not [
            line for log in logs for line in log.splitlines() if "is not renewed" in line or "disconnected" in line
        ]
        cluster.check()

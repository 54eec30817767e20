"""Secrets on a running cluster: workers read them, whatever happens to them, and they are found nowhere else."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, running, star, wait_for
from marker_search import Search
from waiting import answers
from worker_images import TEST_IMAGE

from ces_client import Client
from ces_client.errors import ApiError
from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.bus.port import AccessRefused, RemoteError
from ces_common.messages.secrets import SecretsQuery
from ces_common.natsauth import read_credentials
from ces_common.natsauth.secret_files import new_key, write_secret
from ces_common.roles import Role
from ces_common.states import JOB_OVER

PROCESS = pytest.param("process", marks=pytest.mark.needs("root"))
DOCKER = pytest.param("docker", marks=pytest.mark.needs("root", "engine"))
TASKS = 2
TELL = "base64 $CES_SECRETS_DIR/token"


@pytest.fixture(scope="module", params=[PROCESS, DOCKER])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    if request.param == "docker":
        from worker_images import ensure_images

        ensure_images()
    folder = tmp_path_factory.mktemp("sec")
    talkative = {"CES_LOG_LEVEL": "debug"}
    with running(f"sec{request.param[0]}", folder, star(3), runtime=request.param, settings=talkative) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: FaultCluster) -> Iterator[FaultCluster]:
    yield started
    started.check()


def new_marker() -> bytes:
    return secrets.token_hex(24).encode()


def needing(name: str, stored: str, *expected: bytes, **more: Any) -> dict[str, Any]:
    """A gang on n1 and n2, of which each incarnation expects another value."""
    digests = [hashlib.sha256(value).hexdigest() for value in expected]
    task = {
        "replicas": 1,
        "image": TEST_IMAGE,
        "resources": {"cpu": "200m", "memory": "64Mi"},
        "secrets": {"token": {"from": stored}},
        **program("keeps_secret", *digests),
    }
    tasks = [{**task, "name": f"w{i}", "constraints": {"labels": {"host": f"n{i}"}}} for i in range(1, TASKS + 1)]
    return {"name": name, "tasks": tasks, **more}


def await_readers(cluster: FaultCluster, job: str, incarnation: int) -> None:
    said = f"reads {incarnation}"

    def all_read() -> bool:
        assert cluster.client.jobs.get(job).state not in JOB_OVER, cluster.story(job)
        return sum(line.endswith(said) for line in cluster.client.jobs.logs(job)) == TASKS

    wait_for(all_read, f"all workers have read what incarnation {incarnation} expects")


def end_well(cluster: FaultCluster, job: str) -> None:
    for pid in cluster.worker_pids(job):
        os.kill(pid, signal.SIGUSR1)
    cluster.finish(job)


def test_workers_read_a_secret_through_failures_and_it_is_found_nowhere(cluster: FaultCluster) -> None:
    first, second, unused = new_marker(), new_marker(), new_marker()
    search = Search(cluster, first, second, unused)
    cluster.client.secrets.put("hub", first)
    cluster.client.secrets.put("unused", unused)
    job = cluster.submit(needing("needy", "hub", first, second))
    cluster.await_state(job, "running")
    await_readers(cluster, job, 1)
    assert search.places() == [], "while the workers have it"

    restarts = cluster.cluster.supervisor.starts("agent-n1")
    cluster.cluster.kill("agent-n1")
    cluster.await_start_of("agent-n1", restarts + 1)
    cluster.client.secrets.put("hub", second)
    os.kill(cluster.worker_pids(job)[0], signal.SIGUSR2)
    await_readers(cluster, job, 2)
    view = cluster.await_state(job, "running")
    assert (view.attempt, view.restarts) == (1, 1)
    assert search.places() == []

    end_well(cluster, job)
    wait_for(lambda: not cluster.worker_pids(job), "all workers have ended")
    assert search.places() == []


def test_what_a_worker_tells_itself_is_found(cluster: FaultCluster) -> None:
    """So would be what others tell: the search is no proof if it finds nothing at all."""
    marker = new_marker()
    cluster.client.secrets.put("told", marker)
    task = {"name": "w", "image": TEST_IMAGE, "secrets": {"token": {"from": "told"}}}
    cluster.finish(cluster.submit({"name": "teller", "tasks": [task | {"command": ["sh", "-c", TELL]}]}))
    assert [place for place in Search(cluster, marker).places() if "/logs/" in place]


def test_another_node_and_another_tenant_get_nothing(cluster: FaultCluster) -> None:
    marker = new_marker()
    cluster.client.secrets.put("mine", marker)
    job = cluster.submit(needing("mine", "mine", marker))
    view = cluster.await_state(job, "running")
    await_readers(cluster, job, 1)
    allocation = next(task.allocation for task in view.placement if task.node == "n1")
    asked = SecretsQuery(allocation=str(allocation), incarnation=1).encode()

    async def ask(node: str, of: str) -> bytes:
        layout = cluster.cluster.layout
        credentials = read_credentials(layout.files.agent(node) / "nats.creds")
        bus = NatsBus(layout.nats_url, name=node, credentials=credentials, tls=layout.tls())
        await bus.connect()
        try:
            return await bus.request(subjects.secrets(of), asked)
        finally:
            await bus.close()

    with pytest.raises(RemoteError, match="no task with these secrets is to start on node n3 now"):
        asyncio.run(ask("n3", "n3"))
    with pytest.raises(AccessRefused):
        asyncio.run(ask("n3", "n1"))
    with pytest.raises(RemoteError, match="w1-0 has started on node n1 already"):
        asyncio.run(ask("n1", "n1"))

    name = f"of-red-{secrets.token_hex(4)}"  # a name is used once and for all
    token = cluster.client.tokens.create(name, Role.SUBMITTER, tenants=["red"]).token
    with Client(cluster.cluster.url, token) as red:
        assert list(red.secrets.list()) == []
        with pytest.raises(ApiError, match="no secret mine in tenant red: create it with `ces secret create mine"):
            red.jobs.submit(needing("theirs", "mine", marker))
        with pytest.raises(ApiError, match="is for red, not for default"):
            red.secrets.remove("mine", tenant="default")
    end_well(cluster, job)


def test_a_job_whose_secret_was_removed_fails_and_says_so(cluster: FaultCluster) -> None:
    cluster.client.secrets.put("brief", b"x")
    for node in cluster.nodes:
        cluster.client.nodes.cordon(node)
    job = cluster.submit(needing("late", "brief", b"x"))
    cluster.client.secrets.remove("brief")
    for node in cluster.nodes:
        cluster.client.nodes.uncordon(node)
    view = cluster.await_state(job, "failed")
    assert "no secret brief in tenant default: create it with `ces secret create brief" in (view.reason or "")


def test_a_start_waits_for_the_key_and_says_so_and_keys_take_turns(cluster: FaultCluster) -> None:
    """Also over the exchange of the key: what the former one has encrypted is read after it has gone."""
    former, latter = cluster.cluster.files.secrets_key.read_text(), new_key()
    cluster.client.secrets.put("hub", b"kept")

    def use(keys: str) -> None:
        write_secret(cluster.cluster.files.secrets_key, keys)
        cluster.cluster.restart("manager")
        wait_for(lambda: answers(cluster.cluster.layout.ready_url("manager")), "the manager is ready")

    use(latter)
    job = cluster.submit(needing("patient", "hub", b"kept"))
    said = "waits for its secrets: secret hub of tenant default was encrypted with a key that is not in"
    wait_for(lambda: said in (cluster.client.jobs.get(job).reason or ""), "the job says what it waits for")
    assert cluster.client.jobs.get(job).state == "starting"
    use(latter + former)
    cluster.await_state(job, "running")
    await_readers(cluster, job, 1)
    end_well(cluster, job)

    use(latter)
    after = cluster.submit(needing("after", "hub", b"kept"))
    await_readers(cluster, after, 1)
    end_well(cluster, after)

"""Two regions, each a whole cluster: jobs that have no room at home run in the other one, once, whoever dies between
the steps; and what stands between the regions learns nothing, and may be away."""

from __future__ import annotations

import asyncio
import re
import signal
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
from fault_cluster import FaultCluster, recorded_job, star
from nats.aio.client import RawCredentials
from nats.aio.msg import Msg
from region_clusters import Regions, running_regions
from waiting import wait_for

from ces_common import subjects
from ces_common.messages.regions import HOLD_S
from ces_common.natsauth import credentials_file, jwt, new_user_key
from ces_common.natsauth.permissions import Permissions
from ces_federation.seals import key_of, unseal
from ces_testbed.hub_keeper import start_hub
from ces_testbed.processes import Records, end
from ces_testbed.supervisor import STOP_S

LIFE_S = 2


@pytest.fixture(scope="module")
def _regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    with running_regions(tmp_path_factory.mktemp("reg"), {"home": star(1, cpu="500m"), "far": star(3)}) as made:
        yield made


@pytest.fixture
def regions(_regions: Regions) -> Iterator[Regions]:
    """After the test everything must be released and in order in both."""
    ready(_regions)
    yield _regions
    _regions.check()


@pytest.fixture
def home(regions: Regions) -> FaultCluster:
    return regions.clusters["home"]


@pytest.fixture
def far(regions: Regions) -> FaultCluster:
    return regions.clusters["far"]


def ready(regions: Regions) -> None:
    """Each knows of the other what is good enough to act on."""

    def hears(cluster: FaultCluster) -> bool:
        return [each.state for each in cluster.ask(cluster.client.regions.list)] == ["here", "ready"]

    wait_for(lambda: all(map(hears, regions.clusters.values())), "the regions hear each other")


def leaving(name: str, life_s: float = LIFE_S, **more: Any) -> dict[str, Any]:
    """Three workers, for which home has no room."""
    return recorded_job(name, life_s, regions=["any"], **more)


def ran_once(far: FaultCluster, name: str) -> None:
    """Of all tries at the job there, one ran, and each of its workers once."""
    tries = list(far.client.jobs.list(name=name))
    lived = {each.id: far.lives(each.id) for each in tries}
    ran = [job for job, lives in lived.items() if lives]
    assert len(ran) == 1, lived
    assert [life.incarnation for life in lived[ran[0]]] == [1, 1, 1]
    assert sorted(str(each.state) for each in tries if each.id != ran[0]) == ["cancelled"] * (len(tries) - 1)


def test_a_job_without_room_at_home_runs_in_the_other_region(
    regions: Regions, home: FaultCluster, far: FaultCluster, open_folder: Path
) -> None:
    (open_folder / "hold").touch()
    job = home.submit(recorded_job("far", 0.5, 0, open_folder / "hold", regions=["any"]))
    view = home.await_state(job, "elsewhere")
    assert view.region == regions.names["far"]
    wait_for(lambda: home.client.jobs.get(job).remote_state == "running", "home hears that it runs")
    flows = home.client.jobs.flows(job)
    assert [(flow.src, flow.dst) for flow in flows.flows] == [("w-0", "w-1"), ("w-1", "w-2"), ("w-2", "w-0")]
    assert {bool(flow.rate) for flow in flows.flows} == {True}
    assert not any(flow.path or flow.hops for flow in flows.flows)
    (open_folder / "hold").unlink()
    home.finish(job)
    local = next(iter(far.client.jobs.list(name="far")))
    assert "".join(home.client.jobs.logs(job)) == "".join(far.client.jobs.logs(local.id))
    assert home.lives() == []
    ran_once(far, "far")


def test_a_job_that_names_no_region_stays(home: FaultCluster, far: FaultCluster) -> None:
    before = {each.id for each in far.client.jobs.list()}
    stays = home.submit(recorded_job("stays", LIFE_S))
    leaves = home.submit(leaving("leaves-instead"))
    home.finish(leaves)
    assert home.client.jobs.get(stays).state == "queued"
    assert {each.name for each in far.client.jobs.list() if each.id not in before} == {"leaves-instead"}
    home.client.jobs.cancel(stays)


def test_one_that_is_cancelled_at_home_ends_there(home: FaultCluster, far: FaultCluster) -> None:
    job = home.submit(leaving("cancelled-at-home", 600))
    home.await_state(job, "elsewhere")
    wait_for(lambda: home.client.jobs.get(job).remote_state == "running", "home hears that it runs")
    home.client.jobs.cancel(job)
    [there] = far.client.jobs.list(name="cancelled-at-home")
    far.await_state(there.id, "cancelled")
    assert home.client.jobs.get(job).state == "cancelled"


@pytest.mark.parametrize(
    ("region", "service", "fault"),
    [
        ("home", "federation", "region-held:1"),  # it is held there; nobody has decided
        ("home", "federation", "region-decided:1"),  # it is decided; nobody has committed
        ("home", "federation", "region-committed:1"),  # it is committed there; home does not know
        ("home", "manager", "region-decide:1"),  # the decision is written; who asked for it does not know
        ("far", "manager", "region-hold:1"),  # it is submitted there; nobody knows
        ("far", "manager", "region-commit:1"),  # it may start; nobody knows
    ],
)
def test_whoever_dies_between_two_steps_no_job_is_lost_or_runs_twice(
    regions: Regions, home: FaultCluster, far: FaultCluster, region: str, service: str, fault: str
) -> None:
    starts = regions.clusters[region].arm(service, fault)
    ready(regions)
    name = f"{region}-{fault.replace(':', '-')}"
    job = home.submit(leaving(name))
    home.finish(job)
    regions.clusters[region].await_start_of(service, starts + 1)
    ran_once(far, name)
    assert home.lives() == []


def test_what_a_dead_home_has_left_held_is_given_back(home: FaultCluster, far: FaultCluster) -> None:
    supervisor = home.cluster.supervisor
    home.arm("federation", "region-held:1")
    pid = supervisor.pid("federation")
    job = home.submit(leaving("left-held"))
    wait_for(lambda: supervisor.pid("federation") != pid, "the home's service dies with the job held")
    home.cluster.kill("federation", stay_down=True)
    [held] = far.client.jobs.list(name="left-held")
    view = far.await_state(held.id, "cancelled", timeout_s=4 * HOLD_S)
    assert "did not commit it" in (view.reason or "")
    assert far.lives(held.id) == []
    assert home.client.jobs.get(job).state == "queued"
    home.cluster.restart("federation")
    home.finish(job)
    ran_once(far, "left-held")


def test_without_the_hub_own_jobs_run_on_and_silence_places_nothing_again(
    regions: Regions, home: FaultCluster, far: FaultCluster
) -> None:
    away = home.submit(leaving("goes-on", 15))
    home.await_state(away, "elsewhere")
    wait_for(lambda: home.client.jobs.get(away).remote_state == "running", "home hears that it runs")
    assert end(Records(regions.hub.processes).living(), [(signal.SIGKILL, STOP_S)]) == []
    own = {name: cluster.submit(recorded_job(f"own-{name}", LIFE_S, replicas=2)) for name, cluster in both(regions)}
    for name, cluster in both(regions):
        assert cluster.finish(own[name]).attempt == 1
    wait_for(lambda: home.client.jobs.get(away).unknown_since is not None, "home says that it does not know")
    assert home.client.jobs.get(away).state == "elsewhere"
    assert {each.state for each in home.client.regions.list()} == {"here", "old"}
    waits = home.submit(leaving("waits-for-the-hub"))
    [there] = far.client.jobs.list(name="goes-on")
    far.finish(there.id)
    assert home.client.jobs.get(away).state == "elsewhere"
    assert home.client.jobs.get(waits).state == "queued"
    start_hub(regions.hub)
    assert home.finish(away).attempt == 1
    home.finish(waits)
    ran_once(far, "goes-on")


def both(regions: Regions) -> Iterator[tuple[str, FaultCluster]]:
    yield from regions.clusters.items()


def test_the_hub_sees_neither_what_is_said_nor_more_than_who_says_it(
    regions: Regions, home: FaultCluster, far: FaultCluster
) -> None:
    seen = asyncio.run(captured(regions, home))
    names = set(regions.names.values())
    operations = set()
    jobs = {each.id for cluster in regions.clusters.values() for each in cluster.client.jobs.list()}
    nodes = {node.name for cluster in regions.clusters.values() for node in cluster.client.nodes.list()}
    [pair] = regions.hub.root.glob("pair-*.token")
    key = key_of(pair.read_text().strip())
    for message in seen:
        to, by, operation, _ = subjects.parse_between_regions(message.subject)
        assert {to, by} == names
        operations.add(operation)
        assert not set(re.findall(rb"[\w-]{6,}", message.data)) & {job.encode() for job in jobs}
        if operation == "summary":  # which says no node, job or address either, but the block of all of them
            said = unseal(key, message.subject, message.data, time.time()).decode()
            assert not [name for name in nodes | jobs if f'"{name}"' in said]
            assert len(re.findall(r"\d+\.\d+\.\d+\.\d+", said)) == 1
            assert "captured" not in said
    assert operations - {"release", "tries"} == {"summary", "bid", "hold", "commit", "status", "answer"}


async def captured(regions: Regions, home: FaultCluster) -> list[Msg]:
    """All that passes the hub while a job is placed in the other region and ends there."""
    key = new_user_key()
    seed = (regions.hub.trust / "account.seed").read_text().strip()
    user = jwt.system_user(seed, key.public, "listener", Permissions(publish=(), subscribe=(">",), answers=False))
    hub = regions.hub.read()
    assert hub is not None
    listener = await nats.connect(
        f"tls://127.0.0.1:{hub.client_port}",
        user_credentials=RawCredentials(credentials_file(user, key.seed)),
        tls=ssl.create_default_context(cafile=str(regions.hub.authority)),
        tls_handshake_first=True,
    )
    seen: list[Msg] = []

    async def note(message: Msg) -> None:
        seen.append(message)

    await listener.subscribe(">", cb=note)
    await listener.flush()
    job = await asyncio.to_thread(home.submit, leaving("captured"))
    await asyncio.to_thread(home.finish, job)
    await listener.drain()
    return seen

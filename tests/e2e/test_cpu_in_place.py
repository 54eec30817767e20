"""CPU that changes in place on emulated hosts: it grows into what is idle, and is given up for a job that waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_cluster import FaultCluster, wait_for
from resized_jobs import malleable, rigid

from ces_common.cgroups import UNIFIED, hierarchies


def cpu_limit(pid: int) -> int | None:
    """Millicores that the kernel lets a process have; None where nothing limits it."""
    roots = hierarchies()
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") and "cpu" in roots:
            quota, period = Path(roots["cpu"], path.strip("/"), "cpu.cfs_quota_us").read_text(), "100000"
        elif not controllers and UNIFIED in roots:
            quota, period = Path(roots[UNIFIED], path.strip("/"), "cpu.max").read_text().split()
        else:
            continue
        return None if quota in ("max", "-1") else int(quota) * 1000 // int(period)
    return None


@pytest.mark.timeout(300)
@pytest.mark.needs("root")
def test_a_job_has_what_is_idle_and_gives_it_up_for_one_that_waits(resizing: FaultCluster, open_folder: Path) -> None:
    """Two workers of 1.2 to 2 cores are alone on two hosts of two cores, until a job of five cores needs one of one of
    them."""
    asked = malleable("elastic", open_folder / "elastic", 2, 2)
    asked["tasks"][0]["resources"]["cpu"] = "1200m"
    asked["elastic"]["cpu"] = {"min": "250m", "max": 2}
    job = resizing.submit(asked)
    resizing.await_state(job, "running")
    workers = resizing.worker_pids(job)

    def has(cpu: int) -> bool:
        view = resizing.ask(lambda: resizing.client.jobs.get(job))
        return {each.cpu_desired for each in view.placement} == {cpu} and {*map(cpu_limit, workers)} == {cpu}

    wait_for(lambda: has(2000), "its workers have all of their hosts")
    other = resizing.submit(rigid("rigid", open_folder / "rigid", 5))
    resizing.await_state(other, "running")
    shared = [each.node for each in resizing.client.jobs.get(other).placement]
    mine = [each.cpu_desired for each in resizing.client.jobs.get(job).placement if each.node in shared]
    assert mine, "the job shares a host"
    assert {*mine} == {1000}, "and made room there before"
    wait_for(lambda: has(1000), "both its workers have as much")
    (open_folder / "rigid").unlink()
    resizing.finish(other)
    wait_for(lambda: has(2000), "its workers have all of their hosts again")
    view = resizing.client.jobs.get(job)
    assert (view.attempt, view.restarts, {each.incarnation for each in view.placement}) == (1, 0, {1})
    assert resizing.worker_pids(job) == workers
    (open_folder / "elastic").unlink()
    resizing.finish(job)


@pytest.mark.timeout(300)
@pytest.mark.needs("root")
def test_a_patient_job_begins_with_all_that_it_may_have(cluster: FaultCluster, open_folder: Path) -> None:
    """Two workers have the whole of two hosts of two cores from the first moment on, by their files 1.2."""
    asked = malleable("patient", open_folder / "patient", 2, 2, duration="10m")
    asked["tasks"][0]["resources"]["cpu"] = "1200m"
    asked["elastic"]["cpu"] = {"min": "250m", "max": 2}
    job = cluster.submit(asked)
    cluster.await_state(job, "running")
    view = cluster.client.jobs.get(job)
    assert {each.cpu_desired for each in view.placement} == {2000}
    assert {cpu_limit(pid) for pid in cluster.worker_pids(job)} == {2000}
    assert len({each.node for each in view.placement}) == 2
    (open_folder / "patient").unlink()
    cluster.finish(job)

"""kill -9 of the database server in mid-job: what it had committed is what goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for
from postgres_container import Server, postgres_server

pytestmark = pytest.mark.needs("postgres")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def on_postgres(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    with running("fltq", tmp_path_factory.mktemp("fltq"), star(3), database_url=server.url) as cluster:
        yield cluster


@pytest.mark.parametrize("phase", ["submitted", "planned", "running"])
def test_job_outlives_the_database_server(server: Server, on_postgres: FaultCluster, phase: str) -> None:
    starts = on_postgres.cluster.supervisor.starts("manager")
    job = on_postgres.submit(recorded_job(f"kill-postgres-{phase}", 5))
    if phase == "planned":
        on_postgres.await_state(job, "planned", "preparing", "starting", "running")
    elif phase == "running":
        on_postgres.await_state(job, "running")
    server.kill()
    wait_for(lambda: not server.answers(), "the server is gone")
    wait_for(lambda: on_postgres.ready("manager") == "the database", "the manager says what it misses")
    server.start_again()
    wait_for(server.answers, "the server is back")
    wait_for(lambda: on_postgres.ready("manager") is None, "the manager is ready again")
    view = on_postgres.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in on_postgres.lives(job)] == [1, 1, 1]
    assert on_postgres.cluster.supervisor.starts("manager") == starts, "the manager waits, it does not fall over"
    on_postgres.check()

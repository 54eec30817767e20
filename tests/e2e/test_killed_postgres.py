"""kill -9 of the database server in mid-job: what it had committed is what goes on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from databases import IMAGE
from fault_cluster import FaultCluster, recorded_job, running, star, wait_for
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import testcontainers_config

pytestmark = pytest.mark.needs("postgres")


class Server:
    """Postgres in a container that keeps its port when it starts again."""

    def __init__(self) -> None:
        testcontainers_config.ryuk_disabled = True  # its image cannot be had everywhere; we stop what we start
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._container = PostgresContainer(IMAGE, driver="psycopg").with_bind_ports(5432, port)
        self.url = ""

    def start(self) -> None:
        self._container.start()
        self.url = self._container.get_connection_url()

    def kill(self) -> None:
        self._container.get_wrapped_container().kill("SIGKILL")

    def start_again(self) -> None:
        self._container.get_wrapped_container().start()

    def answers(self) -> bool:
        try:
            with closing(psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=2)):
                return True
        except psycopg.OperationalError:
            return False

    def stop(self) -> None:
        self._container.stop()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    server.start()
    try:
        yield server
    finally:
        server.stop()


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
    wait_for(lambda: not server.answers(), "the server is gone", 10)
    wait_for(lambda: on_postgres.ready("manager") == "the database", "the manager says what it misses", 30)
    server.start_again()
    wait_for(server.answers, "the server is back", 60)
    wait_for(lambda: on_postgres.ready("manager") is None, "the manager is ready again", 60)
    view = on_postgres.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in on_postgres.lives(job)] == [1, 1, 1]
    assert on_postgres.cluster.supervisor.starts("manager") == starts, "the manager waits, it does not fall over"
    on_postgres.check()

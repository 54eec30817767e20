"""A Postgres server that can be killed, and keeps its data and its port when it starts again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from databases import IMAGE
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import testcontainers_config


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


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A started server, gone at the end."""
    server = Server()
    server.start()
    try:
        yield server
    finally:
        server.stop()

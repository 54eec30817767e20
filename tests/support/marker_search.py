"""Where on a cluster a secret's value can be found, as it is or encoded. It should be nowhere."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from http import HTTPStatus
from pathlib import Path

import docker
from fault_cluster import FaultCluster
from waiting import wait_for

from ces_common import subjects
from ces_common.bus import NatsBus
from ces_common.messages.records import SnapshotQuery
from ces_common.natsauth import read_credentials


def forms(marker: bytes) -> list[bytes]:
    """The value itself, in hexadecimal, and in base64 wherever in an encoded text it may begin."""
    found = [marker, marker.hex().encode()]
    for lead in range(3):
        text = base64.b64encode(bytes(lead) + marker)
        found.append(text[-(-lead * 8 // 6) + (lead > 0) : -4])
    return found


class Search:
    """For the values of some secrets, all over a cluster."""

    def __init__(self, cluster: FaultCluster, *markers: bytes) -> None:
        self._cluster = cluster
        self._forms = [form for marker in markers for form in forms(marker)]

    def finds(self, data: bytes) -> bool:
        return any(form in data for form in self._forms)

    def places(self) -> list[str]:
        """Where one was found: files, database, API, NATS, processes, containers."""
        return [name for name, data in self._all() if self.finds(data)]

    def _all(self) -> Iterator[tuple[str, bytes]]:
        yield from self._files(self._cluster.cluster.files.root)
        yield from self._database()
        yield from self._api()
        yield from asyncio.run(self._bus())
        yield from self._processes()
        if self._cluster.cluster.spec.runtime == "docker":
            yield from self._containers()

    @staticmethod
    def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
        """State of agents, logs of services and workers, streams of NATS, the database as it lies on the disk."""
        for path in folder.rglob("*"):
            try:
                if path.is_file():
                    yield str(path), path.read_bytes()
            except OSError:
                continue  # it has gone meanwhile

    def _database(self) -> Iterator[tuple[str, bytes]]:
        name = f"file:{self._cluster.cluster.files.database}?mode=ro"
        with closing(sqlite3.connect(name, uri=True)) as database:
            yield "database", "\n".join(database.iterdump()).encode()

    def _api(self) -> Iterator[tuple[str, bytes]]:
        client = self._cluster.client
        for job in client.jobs.list():
            yield f"job {job.id}", client.jobs.get(job.id).model_dump_json().encode()
            yield (
                f"events of job {job.id}",
                json.dumps([each.data for each in client.jobs.events_so_far(job.id)]).encode(),
            )
        yield "events", json.dumps([each.data for each in client.events_so_far()]).encode()
        yield "secrets", json.dumps([each.model_dump(mode="json") for each in client.secrets.list()]).encode()

    async def _bus(self) -> list[tuple[str, bytes]]:
        """What services are told, and what nodes are to run, expanded."""
        layout = self._cluster.cluster.layout
        credentials = read_credentials(layout.credentials("manager"))
        bus = NatsBus(layout.nats_url, name="manager", credentials=credentials, tls=layout.tls())
        await bus.connect()
        try:
            found = [("snapshot", await bus.request(subjects.rpc("manager", "snapshot"), SnapshotQuery().encode()))]
            for node in self._cluster.nodes:
                for kind in subjects.DESIRED_KINDS:
                    key = subjects.desired_key(node, kind)
                    found.append((key, await bus.kv_get(key) or b""))
        finally:
            await bus.close()
        return found

    @staticmethod
    def _processes() -> Iterator[tuple[str, bytes]]:
        for path in Path("/proc").glob("[0-9]*"):
            for name in ("environ", "cmdline"):
                try:
                    yield str(path / name), (path / name).read_bytes()
                except OSError:
                    continue

    def _containers(self) -> Iterator[tuple[str, bytes]]:
        client = docker.from_env().api
        of_cluster = {"label": [f"ces.cluster={self._cluster.cluster.spec.name}"]}
        for entry in client.containers(all=True, filters=of_cluster):
            name, inspected, files = entry["Names"][0], b"", b""
            with suppress(docker.errors.NotFound):  # it has gone meanwhile
                inspected = json.dumps(client.inspect_container(entry["Id"])).encode()
                files = exported(client, entry["Id"])
            yield f"inspection of {name}", inspected
            yield f"files of {name}", files


def exported(client: docker.APIClient, container: str) -> bytes:
    """All files of a container. One that is being removed cannot be read any more; it is waited for until it has
    gone. Raises NotFound."""
    read: list[bytes] = []

    def readable() -> bool:
        try:
            read.append(b"".join(client.export(container)))
        except docker.errors.APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:
                raise
            return False
        return True

    wait_for(readable, "a container can be read, or has gone")
    return read[0]

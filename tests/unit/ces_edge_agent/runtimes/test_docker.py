"""What is particular to the docker runtime: images, other people's containers, an engine that comes and goes."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import docker
import pytest
from waiting import until

from ces_common.messages.cards import Card
from ces_common.messages.desired import DesiredWorker, Endpoint
from ces_edge_agent.cards import FoundCard, MachineCards
from ces_edge_agent.deadline import Deadline, boot_clock, deadline_file, make_deadline_file, write_deadline
from ces_edge_agent.ports import Refused, RuntimeUnavailable
from ces_edge_agent.runtimes import container_secrets
from ces_edge_agent.runtimes.docker import DockerRuntime
from ces_edge_agent.runtimes.engine import Engine

IMAGE = "python:3.11-slim"
SOCKET = "/var/run/docker.sock"
engine = pytest.mark.needs("engine")
DIES = f"""
import os, signal, sys
from ces_edge_agent.runtimes import container_secrets
from ces_edge_agent.runtimes.engine import Engine
engine = Engine(None, "ces", sys.argv[1])
options = engine.client.create_host_config(mounts=[container_secrets.mount()])
made = engine.client.create_container("{IMAGE}", ["true"], name=engine.name("held"), host_config=options,
    labels={{**engine.labels, "ces.role": "worker"}})
mounts = engine.client.inspect_container(made["Id"])["Mounts"]
with container_secrets.filled(engine, "{IMAGE}", "held", mounts, {{"token": b"marker"}}):
    assert engine.find("held.secrets")["State"]["Running"]
    os.kill(os.getpid(), signal.SIGKILL)
"""


def worker(*command: str, image: str | None = IMAGE, incarnation: int = 0) -> DesiredWorker:
    return DesiredWorker(
        allocation="a1",
        incarnation=incarnation,
        job="j1",
        job_name="job",
        task="t0",
        rank=0,
        image=image,
        command=list(command),
        cpu=1000,
        memory=128 * 2**20,
    )


ENDPOINT = Endpoint(allocation="a1", job="j1.1", address="10.9.0.2", hostname="t0", hosts={"t0": "10.9.0.2"})


def logged(runtime: DockerRuntime) -> str:
    path = runtime.logs.path("a1")
    return path.read_text() if path.exists() else ""


@pytest.fixture
def client() -> Iterator[Any]:
    client = docker.from_env()
    yield client
    client.close()


@pytest.fixture
def name() -> str:
    return f"rt{uuid4().hex[:8]}"


@pytest.fixture
async def runtime(tmp_path: Path, name: str) -> AsyncIterator[DockerRuntime]:
    make_deadline_file(deadline_file(tmp_path))
    write_deadline(deadline_file(tmp_path), Deadline("this", boot_clock() + 3600))
    runtime = DockerRuntime(tmp_path, name, IMAGE, ["python:*", "ces-worker-*"])
    await runtime.open()
    yield runtime
    for key in await runtime.workers():
        await runtime.stop(key, 0)
        await runtime.remove(key)
    for allocation in await runtime.sandboxes():
        await runtime.remove_sandbox(allocation)
    await runtime.close()


@engine
@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (None, "names no image"),
        ("nats:2-alpine", "not among those that this node allows: python:"),
        ("elsewhere/python:3.11-slim", "not among those"),
        ("ces-worker-x.attacker.example/p:latest", "not among those"),
        ("sha256:" + "ab" * 32, "no name of an image"),
        ("ces-worker-absent:1", "ces-worker-absent:1 is not known to this node's engine and could not be pulled: pull"),
    ],
)
async def test_images_that_may_not_or_cannot_run(runtime: DockerRuntime, image: str | None, reason: str) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    with pytest.raises(Refused, match=reason):
        await runtime.start(worker("true", image=image))
    assert await runtime.workers() == {}


@engine
async def test_a_worker_waits_for_its_sandbox(runtime: DockerRuntime) -> None:
    with pytest.raises(RuntimeUnavailable, match="no sandbox"):
        await runtime.start(worker("true"))


@engine
async def test_containers_of_others_are_never_touched(
    runtime: DockerRuntime, tmp_path: Path, client: Any, name: str
) -> None:
    foreign = client.containers.create(IMAGE, ["true"], name=f"ces.ces.{name}.a1", network_mode="none")
    try:
        with pytest.raises(RuntimeUnavailable, match="belongs to somebody else"):
            await runtime.ensure_sandbox(ENDPOINT)
        with pytest.raises(RuntimeUnavailable, match="belongs to somebody else"):
            await runtime.remove_sandbox("a1")
        assert await runtime.sandboxes() == {}
    finally:
        foreign.remove(force=True)
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("sleep", "600"))
    neighbour = DockerRuntime(tmp_path / "other", name, IMAGE, ["python:*"], cluster="another")
    await neighbour.open()
    assert await neighbour.workers() == {}
    assert await neighbour.sandboxes() == {}
    assert await neighbour.usage() == []
    await neighbour.close()


@engine
async def test_a_dead_sandbox_is_recreated(runtime: DockerRuntime, client: Any, name: str) -> None:
    first = await runtime.ensure_sandbox(ENDPOINT)
    client.api.kill(f"ces.ces.{name}.a1")
    client.api.wait(f"ces.ces.{name}.a1")
    assert await runtime.sandboxes() == {}
    assert client.containers.list(all=True, filters={"name": f"ces.ces.{name}.a1"}) == []
    second = await runtime.ensure_sandbox(ENDPOINT)
    assert second != first
    assert await runtime.sandboxes() == {"a1": second}


@engine
async def test_a_container_made_but_never_started_is_made_again(
    runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    with monkeypatch.context() as patch:
        patch.setattr(DockerRuntime, "_run", lambda *_: None)  # as if the agent had ended right there
        await runtime.start(worker("sh", "-c", "echo once"))
    assert await runtime.workers() == {}
    await runtime.open()
    await runtime.start(worker("sh", "-c", "echo once"))
    await until(lambda: logged(runtime) == "once\n")


@engine
async def test_an_adopted_log_goes_on_where_it_stopped(runtime: DockerRuntime, tmp_path: Path, name: str) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("sh", "-c", "echo before; echo -n cut"))
    await until(lambda: logged(runtime) == "before\ncut")
    await runtime.start(worker("sh", "-c", "echo one; echo two >&2", incarnation=1))
    await until(lambda: len(logged(runtime)) == len("before\ncutone\ntwo\n"))
    whole = runtime.logs.path("a1").read_text()
    await runtime.close()
    for length in (len(whole), len(whole) - 3, len("before\ncut")):
        runtime.logs.path("a1").write_text(whole[:length])
        again = DockerRuntime(tmp_path, name, IMAGE, ["python:*"])
        await again.open()
        await until(lambda: logged(runtime) == whole)
        await again.close()


async def test_an_engine_that_is_away_is_unavailable(tmp_path: Path) -> None:
    runtime = DockerRuntime(tmp_path, "n0", IMAGE, ["python:*"], engine=f"unix://{tmp_path}/none.sock")
    with pytest.raises(RuntimeUnavailable, match="does not answer"):
        await runtime.open()
    with pytest.raises(RuntimeUnavailable, match="does not answer"):
        await runtime.workers()
    with pytest.raises(RuntimeUnavailable, match="does not answer"):
        await runtime.start(worker("true"))
    await runtime.close()


@engine
@pytest.mark.skipif(not Path(SOCKET).exists(), reason="the engine is not a local one")
async def test_an_engine_that_comes_back_is_used_again(tmp_path: Path, name: str) -> None:
    """The engine's socket behind a relay that is switched off and on."""
    path = tmp_path / "engine.sock"

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(SOCKET)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer), return_exceptions=True)

    runtime = DockerRuntime(tmp_path / "state", name, IMAGE, ["python:*"], engine=f"unix://{path}")
    with pytest.raises(RuntimeUnavailable):
        await runtime.open()
    async with await asyncio.start_unix_server(relay, path):
        await runtime.open()
        assert await runtime.workers() == {}
    path.unlink(missing_ok=True)
    await runtime.close()


@engine
@pytest.mark.parametrize("program", ["/etc/hostname", "/etc"])
async def test_what_cannot_be_executed_is_refused(runtime: DockerRuntime, program: str) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    with pytest.raises(Refused, match="cannot be executed"):
        await runtime.start(worker(program))
    assert await runtime.workers() == {}


WRITES = """
import errno, os
def tries(path, size=1):
    try:
        with open(path, "wb") as file:
            file.write(bytes(size))
    except OSError as error:
        return errno.errorcode[error.errno]
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return "done"
print(os.getuid(), *(tries(path) for path in ("mine", "/tmp/x", "/dev/shm/x", "/x", "/usr/x", "/var/tmp/x", "/root/x")))
print(tries("/tmp/big", 65 << 20), tries("mine", 65 << 20))
"""


@engine
@pytest.mark.parametrize("user", ["0:0", "10001:10001"])
async def test_a_worker_writes_its_folder_and_tmp_and_nothing_else(
    runtime: DockerRuntime, client: Any, name: str, user: str
) -> None:
    tag = f"ces-worker-{name}"
    made = client.api.create_container(IMAGE)["Id"]
    client.api.commit(made, tag, changes=[f"USER {user}"])
    client.api.remove_container(made, v=True)
    try:
        await runtime.ensure_sandbox(ENDPOINT)
        await runtime.start(worker("python", "-c", WRITES, image=tag))
        await until(lambda: len(logged(runtime).splitlines()) == 2)
        first, second = logged(runtime).splitlines()
        assert first.split() == [user.partition(":")[0], "done", "done", "done", *["EROFS"] * 3, first.split()[-1]]
        assert first.split()[-1] in ("EROFS", "EACCES")  # root's home is closed to others
        assert second.split() == ["ENOSPC", "done"], "memory of 128 MiB: half of it for /tmp"
        volumes = [mount["Name"] for mount in client.api.inspect_container(f"ces.ces.{name}.a1.0")["Mounts"]]
        await runtime.stop("a1.0", 0)
        await runtime.remove("a1.0")
        kept = {volume["Name"] for volume in client.api.volumes()["Volumes"] or []}
        assert len(volumes) == 1
        assert not kept & set(volumes)
    finally:
        for key in await runtime.workers():
            await runtime.stop(key, 0)
            await runtime.remove(key)
        client.images.remove(tag, force=True)


@engine
async def test_what_holds_secrets_until_a_worker_starts_ends_with_the_agent(runtime: DockerRuntime, name: str) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    dies = [sys.executable, "-c", DIES, name]
    agent = await asyncio.to_thread(subprocess.run, dies, capture_output=True, text=True)
    assert agent.returncode == -signal.SIGKILL, agent.stderr
    held = Engine(None, "ces", name)

    def ended() -> bool:
        helper = held.find("held.secrets")
        return helper is not None and not helper["State"]["Running"]

    try:
        await until(ended)
    finally:
        container_secrets.discard(held)
        held.client.remove_container(held.name("held"), force=True, v=True)
        held.close()


@engine
async def test_no_worker_starts_without_its_secrets_where_what_holds_them_ends_too_soon(
    runtime: DockerRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runtime.ensure_sandbox(ENDPOINT)
    needs = worker("sh", "-c", 'cat "$CES_SECRETS_DIR/token"').model_copy(update={"secrets": ["token"]})
    with monkeypatch.context() as hasty:
        hasty.setattr(container_secrets, "_HELPER", "true")
        with pytest.raises(RuntimeUnavailable, match="what holds its secrets"):
            await runtime.start(needs, {"token": b"marker"})
    assert await runtime.workers() == {}
    await runtime.start(needs, {"token": b"marker"})
    await until(lambda: "marker" in logged(runtime))


FILLS = "i=0; while true; do i=$((i+1)); head -c 65536 /dev/zero >f$i; done"


@engine
async def test_a_container_that_keeps_too_much_is_ended_and_says_why(tmp_path: Path, name: str) -> None:
    make_deadline_file(deadline_file(tmp_path))
    write_deadline(deadline_file(tmp_path), Deadline("this", boot_clock() + 3600))
    small = DockerRuntime(tmp_path, name, IMAGE, ["python:*"], disk=2**20)
    await small.open()
    try:
        if small.confinement.disk != "measured":
            pytest.skip("this engine limits it itself, or its volumes cannot be seen here")
        await small.ensure_sandbox(ENDPOINT)
        await small.start(worker("sh", "-c", FILLS))
        async with asyncio.timeout(60):
            while (status := (await small.workers())["a1.0"]).state != "exited":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (status.exit_code, status.reason) == (137, "disk limit exceeded: more than 1048576 bytes in its folder")
        again = DockerRuntime(tmp_path, name, IMAGE, ["python:*"], disk=2**20)
        await again.open()
        assert (await again.workers())["a1.0"] == status
        await again.close()
        await small.remove("a1.0")
        assert list((tmp_path / "overfull").iterdir()) == []
    finally:
        for key in await small.workers():
            await small.stop(key, 0)
            await small.remove(key)
        await small.remove_sandbox("a1")
        await small.close()


@engine
async def test_the_engine_is_told_which_cards_a_worker_gets(
    runtime: DockerRuntime, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not just how many: those would be the first ones, for every worker."""
    runtime._cards = MachineCards([FoundCard(Card(id=f"GPU-{i}"), i, i) for i in (0, 1)])
    monkeypatch.setattr(runtime, "_run", lambda *_: None)  # without such cards nothing would start
    await runtime.ensure_sandbox(ENDPOINT)
    for incarnation, (cards, asked) in enumerate([(["GPU-1"], ["GPU-1"]), (["gpu0"], ["GPU-0"]), ([], None)]):
        asking = worker("true", incarnation=incarnation).model_copy(update={"gpu": 1, "cards": cards})
        await runtime.start(asking)
        made = client.api.inspect_container(runtime._engine.name(asking.key))
        (request,) = made["HostConfig"]["DeviceRequests"]
        assert (request["DeviceIDs"] or None, request["Count"]) == (asked, 0 if asked else 1)
        assert request["Capabilities"] == [["gpu"]]
        told = [each for each in made["Config"]["Env"] if each.startswith("CUDA_VISIBLE_DEVICES=")]
        assert told == ([f"CUDA_VISIBLE_DEVICES={asked[0]}"] if asked else [])
        client.api.remove_container(made["Id"])


@engine
async def test_a_worker_without_cards_is_given_none_whatever_it_says(
    runtime: DockerRuntime, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NVIDIA's runtime is the engine's usual one, it goes by this."""
    monkeypatch.setattr(runtime, "_run", lambda *_: None)
    await runtime.ensure_sandbox(ENDPOINT)
    asking = worker("true").model_copy(update={"env": {"NVIDIA_VISIBLE_DEVICES": "all"}})
    await runtime.start(asking)
    made = client.api.inspect_container(runtime._engine.name(asking.key))
    told = [each for each in made["Config"]["Env"] if each.startswith("NVIDIA_VISIBLE_DEVICES=")]
    client.api.remove_container(made["Id"])
    assert told == ["NVIDIA_VISIBLE_DEVICES=void"]
    assert not made["HostConfig"]["DeviceRequests"]

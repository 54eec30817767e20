"""What every runtime promises of secrets: their worker reads them, and nobody finds them anywhere else."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import docker
import pytest
import runtime_bench
from runtime_bench import Bench, DockerBench, ProcessBench, ended, log_text, logged, until

from ces_edge_agent.ports import Runtime

UNPRIVILEGED = """
import asyncio, os, signal, sys
from pathlib import Path
from runtime_bench import ProcessBench, clean, ended, endpoint, logged
async def main():
    bench = ProcessBench(Path(sys.argv[1]))
    runtime = bench.make()
    await runtime.open()
    await runtime.ensure_sandbox(endpoint())
    def kept():
        return len(list(bench.folder.rglob("token")))
    async def run(incarnation):
        worker = bench.worker("sh", "-c", sys.argv[2], incarnation=incarnation, secrets=["token"])
        await runtime.start(worker, {"token": b"marker"})
        return await logged(runtime, "mine")
    print(await run(0))
    before = kept()
    await runtime.stop("a1.0", 5)
    print(before, "file,", kept(), "after its end")
    await run(1)
    before = kept()
    os.kill(int((bench.folder / "workers" / "a1.1" / "claim").read_text()), signal.SIGKILL)
    await ended(runtime, "a1.1")
    print(before, "file,", kept(), "after the end of what watched it")
    await clean(runtime)
asyncio.run(main())
"""
FOREVER = "while true; do cat $CES_SECRETS_DIR/token | wc -c; sleep 0.05; done"
MODES = "cd $CES_SECRETS_DIR; stat -c '%n %a' . *; touch more 2>/dev/null || echo closed; test -O token && echo mine"


async def test_a_worker_reads_its_secrets_and_each_incarnation_those_of_its_time(
    runtime: Runtime, bench: Bench
) -> None:
    for incarnation, value in enumerate(("first", "second")):
        worker = bench.worker(*bench.reveals("hub.token"), incarnation=incarnation, secrets=["hub.token", "other"])
        await runtime.start(worker, {"hub.token": value.encode(), "other": b"\0\xff"})
        assert (await ended(runtime, worker.key)).exit_code == 0
    assert await logged(runtime, "second\n") == "first\nsecond\n"


async def test_secrets_lie_in_memory_for_their_worker_alone_and_end_with_it(runtime: Runtime, bench: Bench) -> None:
    if not bench.real:
        pytest.skip("the fake runs no program")
    marker = uuid4().hex
    worker = bench.worker("sh", "-c", f"{MODES}; {FOREVER}", secrets=["token"])
    await runtime.start(worker, {"token": marker.encode()})
    text = await logged(runtime, f"{len(marker)}\n")
    assert "token 4" in text
    assert ("closed" in text) or os.geteuid() != 0
    if isinstance(bench, ProcessBench):
        assert {". 700", "token 400", "mine"} <= set(text.splitlines())
    if os.geteuid() == 0 or isinstance(bench, DockerBench):
        assert not holders(bench, marker), "it is in memory alone"
    again = bench.make()  # an agent that starts again
    await again.open()
    length = len(await log_text(again))

    async def still_reads() -> bool:
        return len(await log_text(again)) > length + 200

    await until(still_reads)
    assert "No such file" not in await log_text(again)
    await again.stop("a1.0", 5)
    assert not holders(bench, marker)
    await again.close()


async def test_nothing_is_left_where_what_watches_the_worker_was_killed(runtime: Runtime, bench: Bench) -> None:
    if not isinstance(bench, ProcessBench):
        pytest.skip("only processes have a shim")
    marker = uuid4().hex
    await runtime.start(bench.worker("sh", "-c", FOREVER, secrets=["token"]), {"token": marker.encode()})
    await logged(runtime, f"{len(marker)}\n")
    os.kill(int((bench.folder / "workers" / "a1.0" / "claim").read_text()), signal.SIGKILL)
    assert (await ended(runtime, "a1.0")).reason == "shim vanished"
    assert not holders(bench, marker)


def holders(bench: Bench, marker: str) -> list[str]:
    """Where a value is found, as it is or encoded: files of the agent, and what the engine tells and keeps on disk."""
    forms = [marker.encode(), base64.b64encode(marker.encode()).rstrip(b"=")]
    found = [str(path) for path in files_below(bench.folder) if any(form in path.read_bytes() for form in forms)]
    if isinstance(bench, DockerBench):
        client = docker.from_env().api
        of_node = {"label": [f"ces.node={bench.node}"]}
        for entry in client.containers(all=True, filters=of_node):
            described = client.inspect_container(entry["Id"])
            written = client.export(entry["Id"])
            if marker in json.dumps(described) or forms[0] in b"".join(written):
                found.append(entry["Names"][0])
    return found


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.needs("root")
def test_an_agent_that_is_not_root_keeps_them_in_its_folder_until_the_worker_ends(tmp_path: Path) -> None:
    """It runs in a user namespace, in which it is an ordinary user whose files are this test's."""
    entering = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if shutil.which("unshare") is None or subprocess.run([*entering, "true"]).returncode:
        pytest.skip("no user namespaces here")
    agent = [sys.executable, "-c", UNPRIVILEGED, str(tmp_path / "state"), f"{MODES}; {FOREVER}"]
    support = {**os.environ, "PYTHONPATH": str(Path(runtime_bench.__file__).parent)}
    done = subprocess.run([*entering, *agent], env=support, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    told = done.stdout.decode().splitlines()
    assert {". 700", "token 400", "mine"} <= set(told)
    assert told[-2:] == ["1 file, 0 after its end", "1 file, 0 after the end of what watched it"]

"""What every runtime promises of secrets: their worker reads them, and nobody finds them anywhere else."""

from __future__ import annotations

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
from marker_search import forms
from runtime_bench import Bench, DockerBench, ProcessBench, ended, log_text, logged, until

from ces_edge_agent.ports import Runtime

UNPRIVILEGED = """
import asyncio, sys
from pathlib import Path
from runtime_bench import ProcessBench, clean, ended, endpoint
from ces_edge_agent.ports import Refused
async def main():
    bench = ProcessBench(Path(sys.argv[1]))
    runtime = bench.make()
    await runtime.open()
    await runtime.ensure_sandbox(endpoint())
    print(runtime.confinement.user)
    try:
        await runtime.prepare(bench.worker("true", secrets=["token"]))
    except Refused as refused:
        print(refused)
    plain = bench.worker("true")
    await runtime.prepare(plain)
    await runtime.start(plain)
    print((await ended(runtime, plain.key)).exit_code)
    left = bench.folder / "workers" / "a1.1" / "secrets" / "deeper"
    left.mkdir(parents=True)
    (left / "token").write_bytes(b"marker")
    (left.parent / "elsewhere").symlink_to(sys.argv[2])
    (left.parent.parent / "claim").touch()
    left.chmod(0)
    again = bench.make()
    await again.open()
    print((await ended(again, "a1.1")).reason, left.parent.exists(), len(list(Path(sys.argv[2]).iterdir())))
    await clean(again)
asyncio.run(main())
"""
FOREVER = "while true; do cat $CES_SECRETS_DIR/token | wc -c; sleep 0.05; done"
MODES = "cd $CES_SECRETS_DIR; stat -c '%n %a' . *; touch more 2>/dev/null || echo closed; test -O token && echo mine"


async def test_a_worker_reads_its_secrets_and_each_incarnation_those_of_its_time(
    runtime: Runtime, bench: Bench
) -> None:
    if not runtime.confinement.keeps_secrets:
        pytest.skip("this node gives none")
    for incarnation, value in enumerate(("first", "second")):
        worker = bench.worker(*bench.reveals("hub.token"), incarnation=incarnation, secrets=["hub.token", "other"])
        await runtime.start(worker, {"hub.token": value.encode(), "other": b"\0\xff"})
        assert (await ended(runtime, worker.key)).exit_code == 0
    assert await logged(runtime, "second\n") == "first\nsecond\n"


async def test_secrets_lie_in_memory_for_their_worker_alone_and_end_with_it(runtime: Runtime, bench: Bench) -> None:
    if not runtime.confinement.keeps_secrets:
        pytest.skip("this node gives none")
    if not bench.real:
        pytest.skip("the fake runs no program")
    marker = uuid4().hex
    worker = bench.worker("sh", "-c", f"{MODES}; {FOREVER}", secrets=["token"])
    await runtime.start(worker, {"token": marker.encode()})
    text = await logged(runtime, f"{len(marker)}\n")
    assert "token 4" in text
    assert "closed" in text
    if isinstance(bench, ProcessBench):
        assert {". 700", "token 400", "mine"} <= set(text.splitlines())
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
    if not runtime.confinement.keeps_secrets:
        pytest.skip("this node gives none")
    marker = uuid4().hex
    await runtime.start(bench.worker("sh", "-c", FOREVER, secrets=["token"]), {"token": marker.encode()})
    await logged(runtime, f"{len(marker)}\n")
    os.kill(int((bench.folder / "workers" / "a1.0" / "claim").read_text()), signal.SIGKILL)
    assert (await ended(runtime, "a1.0")).reason == "shim vanished"
    assert not holders(bench, marker)


def holders(bench: Bench, marker: str) -> list[str]:
    """Where a value is found, as it is or encoded: files of the agent, and what the engine tells and keeps on disk."""
    sought = forms(marker.encode())
    found = [str(path) for path in files_below(bench.folder) if any(form in path.read_bytes() for form in sought)]
    if isinstance(bench, DockerBench):
        client = docker.from_env().api
        of_node = {"label": [f"ces.node={bench.node}"]}
        for entry in client.containers(all=True, filters=of_node):
            described = client.inspect_container(entry["Id"])
            told = json.dumps(described).encode() + b"".join(client.export(entry["Id"]))
            if any(form in told for form in sought):
                found.append(entry["Names"][0])
    return found


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.needs("root")
def test_an_agent_that_is_not_root_gives_no_secrets_and_clears_away_what_one_of_before_has_left(tmp_path: Path) -> None:
    """It runs in a user namespace, in which it is an ordinary user whose files are this test's. What is left there a
    worker has changed: a folder that is closed, and a link to elsewhere."""
    entering = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if shutil.which("unshare") is None or subprocess.run([*entering, "true"]).returncode:
        pytest.skip("no user namespaces here")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    agent = [sys.executable, "-c", UNPRIVILEGED, str(tmp_path / "state"), str(elsewhere)]
    support = {**os.environ, "PYTHONPATH": str(Path(runtime_bench.__file__).parent)}
    done = subprocess.run([*entering, *agent], env=support, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    user, refused, code, left = done.stdout.decode().splitlines()
    assert user == "shared"
    assert refused.startswith("only workers with a user of their own are given secrets, and here all share one: run")
    assert (code, left) == ("0", "shim vanished False 1")

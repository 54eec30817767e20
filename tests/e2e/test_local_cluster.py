"""`ces demo`, `ces up` and `ces down` as a user runs them: what they show, how they end, and that nothing stays."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx
import psutil
import pytest
from ces_command import ces as called
from waiting import PATIENCE_S, wait_for

from ces_client import Client
from ces_testbed.processes import MARK, Known
from ces_testbed.spec import ClusterSpec, Files

ROOT = Path(__file__).parents[2]
CES = (sys.executable, "-c", "from ces_client.cli.app import main; main()")
CLEAN = "clean: no process, namespace, device, control group or container is left"
NAMESPACES = Path("/run/netns")


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """For one test's clusters: all of their files lie in its folder, by which strays are found afterwards."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CES_")}
    own |= {
        "TMPDIR": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "CES_CONTEXT": str(tmp_path / "context.json"),
    }
    yield own
    found = strays(tmp_path)
    for process in found:
        process.kill()
    assert found == []


def strays(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(MARK, "").startswith(str(folder))
            if marked or any(f"{folder}/" in part for part in process.cmdline()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def namespaces(cluster: str) -> list[str]:
    return [path.name for path in NAMESPACES.glob(f"ces-{cluster}-*")] if NAMESPACES.is_dir() else []


class Demo:
    """A running `ces demo`, its output in a file."""

    def __init__(self, env: dict[str, str], folder: Path, *options: str) -> None:
        self.folder, self._output = folder, folder / "demo.txt"
        with self._output.open("wb") as file:
            self.process = start([*CES, "demo", *options], env, file)

    @property
    def output(self) -> str:
        return self._output.read_text(errors="replace")

    def cluster(self) -> str:
        """Its cluster's name, which its files tell while it runs."""
        roots = list(self.folder.glob("ces-demo-*"))
        spec: ClusterSpec | None = Files(roots[0]).read_spec() if roots else None
        return spec.name if spec is not None else ""

    def wait_for_output(self, text: str) -> None:
        wait_for(lambda: text in self.output or self.process.poll() is not None, f"it says {text!r} or ends")
        assert text in self.output, self.output

    def ended_clean(self, cluster: str) -> None:
        assert CLEAN in self.output, self.output
        assert namespaces(cluster) == []
        assert list(self.folder.glob("ces-demo-*")) == []


def start(command: list[str], env: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    # A session of its own, and Ctrl-C heeded even where whoever runs these tests has it ignored.
    program = ["env", "--default-signal=INT", *command]
    return subprocess.Popen(
        program, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def ces(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CES, *arguments], env=env, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.needs("root")
@pytest.mark.timeout(600)
def test_the_demonstration_trains_measures_and_leaves_nothing(env: dict[str, str], tmp_path: Path) -> None:
    demo = Demo(env, tmp_path)
    demo.wait_for_output("digits-ring running")
    cluster = demo.cluster()
    assert len([name for name in namespaces(cluster) if name.endswith("-dp")]) == 7
    page = re.search(r"(http://127\.0\.0\.1:\d+)/ui/#code=(\S+)", demo.output)
    assert page is not None, demo.output
    signed_in = httpx.post(f"{page[1]}/v1/sessions", json={"code": page[2]}, trust_env=False, timeout=60)
    assert signed_in.status_code == 201, "the page that it names cannot be signed in to"
    assert demo.process.wait(300) == 0, demo.output
    demo.ended_clean(cluster)
    assert "bandwidth is enforced" in demo.output
    assert "digits-ring succeeded" in demo.output
    assert re.search(r"5 workers, 40 rounds, accuracy 9\d\.\d% at every worker", demo.output)
    shares = [int(share) for share in re.findall(r"(\d+)%$", demo.output, re.MULTILINE)]
    flows = [share for share in shares if share]
    assert flows, demo.output
    assert all(share <= 105 for share in flows), demo.output


@pytest.mark.needs("root")
@pytest.mark.timeout(600)
def test_without_root_it_runs_the_same_job(env: dict[str, str], tmp_path: Path) -> None:
    """As nobody, in an environment that borrows this one's packages; the machine's own Python must be readable."""
    python = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    if python is None:
        pytest.skip("needs a Python of this version that every user may run")
    home = Path("/var/tmp") / f"ces-test-{os.getpid()}"
    try:
        subprocess.run([python, "-m", "venv", "--without-pip", str(home / "venv")], check=True, timeout=60)
        here = home / "venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "ces.pth"
        here.write_text(f"import site; site.addsitedir({packages!r})\n")
        (home / "tmp").mkdir()
        shutil.chown(home / "tmp", 65534, 65534)
        home.chmod(0o755)
        mine = {"PATH": f"/usr/bin:/bin:{Path(sys.executable).parent}", "HOME": str(home / "tmp")}
        mine["TMPDIR"] = str(home / "tmp")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(home / "venv/bin/python")]
        readable = [*nobody, "-c", "import ces_testbed, ces_manager, pydantic_core"]
        if subprocess.run(readable, env=mine, cwd="/", capture_output=True, timeout=60, check=False).returncode != 0:
            pytest.skip("needs this checkout and its environment where every user may read them")
        result = subprocess.run(
            [*nobody, *CES[1:], "demo"],
            env=mine,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        said = " ".join(result.stdout.split())  # wherever the console broke its lines
        assert "network none (it needs root)" in said
        assert "bandwidth is not enforced or measured" in said
        assert "digits-ring succeeded" in result.stdout
        assert CLEAN in result.stdout
        assert strays(home) == []
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.mark.needs("root")
def test_ctrl_c_while_training_ends_clean(env: dict[str, str], tmp_path: Path) -> None:
    demo = Demo(env, tmp_path)
    demo.wait_for_output("digits-ring running")
    cluster = demo.cluster()
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(PATIENCE_S) == 130, demo.output
    demo.ended_clean(cluster)
    assert "Where to go next" not in demo.output


@pytest.mark.parametrize("network", [pytest.param("tc", marks=pytest.mark.needs("root")), "none"])
def test_an_end_asked_for_while_starting_ends_clean(env: dict[str, str], tmp_path: Path, network: str) -> None:
    demo = Demo(env, tmp_path, "--network", network)
    wait_for(lambda: demo.cluster() != "", "its files name the cluster")
    cluster = demo.cluster()
    demo.process.send_signal(signal.SIGTERM)
    demo.process.send_signal(signal.SIGTERM)  # again: impatience must not break the cleaning up
    assert demo.process.wait(PATIENCE_S) == 130, demo.output
    demo.ended_clean(cluster)


@pytest.mark.needs("root")
def test_a_killed_demonstration_is_cleaned_up_by_its_cluster(env: dict[str, str], tmp_path: Path) -> None:
    demo = Demo(env, tmp_path)
    demo.wait_for_output("digits-ring running")
    cluster = demo.cluster()
    demo.process.kill()
    demo.process.wait()
    wait_for(lambda: not strays(tmp_path) and not namespaces(cluster), "nothing of it is left")


@pytest.mark.needs("root", "engine")
@pytest.mark.timeout(600)
def test_the_demonstration_runs_in_containers(env: dict[str, str], tmp_path: Path) -> None:
    import docker
    from compose_stack import build_missing_images

    build_missing_images()
    demo = Demo(env | {"RUNTIME": "docker"}, tmp_path)
    demo.wait_for_output("digits-ring running")
    cluster = demo.cluster()
    client = docker.from_env()
    try:
        mine = {"label": f"ces.cluster={cluster}"}
        assert len(client.containers.list(filters=mine)) >= 5
        assert demo.process.wait(300) == 0, demo.output
        demo.ended_clean(cluster)
        assert client.containers.list(all=True, filters=mine) == []
    finally:
        client.close()


def sleepers(seconds: str) -> set[int]:
    """The processes that sleep for so long."""
    found = ((process.pid, process.info["cmdline"]) for process in psutil.process_iter(["cmdline"]))
    return {pid for pid, line in found if line and line[-2:] == ["sleep", seconds]}


LOOK = """
import os, pathlib, sys
for path in sys.argv[1:]:
    try:
        kind = "folder" if os.path.isdir(path) else "file"
        seen = os.listdir(path) if kind == "folder" else pathlib.Path(path).read_text()
    except OSError:
        seen = ""
    print("saw:", sorted(seen) if isinstance(seen, list) else seen.strip() or "nothing")
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder in which everybody may look; under /var/tmp, since an isolated worker has a /tmp of its own anyway."""
    folder = Path("/var/tmp") / f"ces-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def keeper_of(state: Path) -> Known:
    running = {entry["name"]: entry["pid"] for entry in json.loads((state / "processes.json").read_text())}
    keeper = Known.of("supervisor", running["supervisor"])
    assert keeper is not None
    return keeper


def kill(keeper: Known) -> None:
    os.kill(keeper.pid, signal.SIGKILL)
    wait_for(lambda: not keeper.alive(), "its keeper is gone")


@pytest.mark.needs("root")
@pytest.mark.timeout(600)
def test_a_cluster_outlives_its_keeper_with_its_jobs_and_is_safe_from_other_homes_and_its_workers(
    env: dict[str, str], tmp_path: Path, home: Path
) -> None:
    name = f"k{os.getpid():x}"
    state = home / "ces" / name
    env |= {"XDG_STATE_HOME": str(home), "CES_CONTEXT": str(home / "context.json"), "TMPDIR": str(home)}
    other = env | {"XDG_STATE_HOME": str(tmp_path / "other"), "CES_CONTEXT": str(tmp_path / "other.json")}
    seconds = f"600.{os.getpid()}"
    secrets = [state / "admin.token", state / "trust", home / "context.json"]
    look = ["python", "-c", LOOK, *map(str, secrets)]
    for file, program in (("sleep", ["sleep", seconds]), ("look", look)):
        entry = {"name": file, "tasks": [{"name": "w", "command": program}], "restart": {"policy": "never"}}
        (tmp_path / f"{file}.yaml").write_text(json.dumps(entry))
    try:
        # A lease that outlasts how slow a busy machine makes everything that follows.
        patient = ("--set", "lease_s=240")
        started = ces(env, "up", "--name", name, "--network", "tc", "--set", "solve_time_limit_s=0.05", *patient)
        assert started.returncode == 0, started.stdout + started.stderr
        assert "is up at https://" in started.stdout
        assert f"ces down --name {name}" in started.stdout
        again = ces(env, "up", "--name", name, "-o", "json")
        assert again.returncode == 2
        assert "up already" in json.loads(again.stdout)["error"]["title"]
        exported = shlex.split(ces(env, "env").stdout)
        told = dict(word.split("=", 1) for word in exported[1:])
        with Client(told["CES_URL"], told["CES_TOKEN"]) as client:  # whose token says whom to trust
            nodes = list(client.nodes.list())
        assert len(nodes) == 7
        assert {(node.state, node.network) for node in nodes} == {("ready", "tc")}
        assert ces(env, "submit", str(tmp_path / "sleep.yaml")).returncode == 0
        wait_for(lambda: json.loads(ces(env, "get", "jobs", "-o", "json").stdout)[0]["state"] == "running", "it runs")
        workers = sleepers(seconds)
        assert workers != set()

        assert all(path.exists() for path in secrets)
        submitted = ces(env, "submit", str(tmp_path / "look.yaml"), "--wait")
        assert submitted.returncode == 0, submitted.stdout + submitted.stderr
        lines = [line for line in ces(env, "logs", "look").stdout.splitlines() if "saw:" in line]
        assert len(lines) == len(secrets)
        assert all(line.endswith("saw: nothing") for line in lines), lines

        for command in ("up", "down"):
            refused = ces(other, command, "--name", name)
            assert refused.returncode == 2, refused.stdout + refused.stderr
            assert f"it is that of {state}" in refused.stderr
        assert ces(other, "testbed", "down", "--name", name).returncode == 2
        hosts = namespaces(name)

        kill(keeper_of(state))
        assert ces(other, "up", "--name", name).returncode == 2, "its services run on, and so the name is held"
        assert ces(env, "up", "--name", name, "--runtime", "process", "--port", "1").returncode == 2
        resumed = ces(env, "up", "--name", name)
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
        assert "resuming it, with its jobs and history" in resumed.stdout
        assert set(hosts) <= set(namespaces(name))
        job = json.loads(ces(env, "describe", "job", "sleep", "-o", "json").stdout)
        assert (job["state"], job["attempt"], job["restarts"]) == ("running", 1, 0)
        assert sleepers(seconds) == workers

        kill(keeper_of(state))
        submitted = ces(env, "submit", str(ROOT / "examples/jobs/digits-ring.yaml"))
        assert submitted.returncode == 0, submitted.stderr
    finally:
        ended = ces(env, "down", "--name", name)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert strays(home) == []
    assert namespaces(name) == []
    assert [path.name for path in state.iterdir()] == ["logs"]
    assert not (home / "context.json").exists()
    assert "nothing to do" in ces(env, "down", "--name", name).stdout


def test_wrong_input_starts_nothing(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("nodes: [{name: a, cpu: fast}]")
    given = dict.fromkeys(name for name in os.environ if name.startswith("CES_")) | env  # None: is left out
    for arguments, message in (
        (("up", "--topology", str(tmp_path / "bad.yaml")), "nodes[0].cpu"),
        (("up", "--queue", str(tmp_path / "bad.yaml")), "nodes: unknown field"),
        (("up", "--name", "Not-A-Name"), "cannot name a cluster"),
        (("up", "--set", "tik_s=1"), "similar: CES_TICK_S"),
        (("up", "--set", "tick_s=soon"), "CES_TICK_S: must be a number"),
        (("up", "--policy", str(tmp_path / "none.onnx")), "there is no file"),
        (("up", "--state", str(tmp_path)), "holds other things"),
        (("testbed", "up", "--topology", str(tmp_path / "none.yaml")), "cannot be read"),
    ):
        assert message in called(*arguments, code=2, env=given).stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.needs("root")
def test_a_bare_testbed_comes_and_goes(env: dict[str, str]) -> None:
    name = f"b{os.getpid():x}"
    try:
        made = ces(env, "testbed", "up", "--name", name, "-o", "json")
        assert made.returncode == 0, made.stderr
        assert len(json.loads(made.stdout)["hosts"]) == 7
        assert name in json.loads(ces(env, "testbed", "show", "-o", "json").stdout)["testbeds"]
    finally:
        removed = ces(env, "testbed", "down", "--name", name)
    assert removed.returncode == 0, removed.stderr
    assert namespaces(name) == []

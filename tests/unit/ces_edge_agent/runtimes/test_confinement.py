"""What a worker process cannot reach where its agent is root: other users' files, other workers', and the kernel."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from process_node import ENDPOINT, Node, node_in, worker

from ces_common.messages.cards import Card
from ces_common.service import BadSetup
from ces_edge_agent import linux
from ces_edge_agent.cards import FoundCard, MachineCards
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes import isolation, process
from ces_edge_agent.runtimes.process import ProcessRuntime

pytestmark = pytest.mark.needs("root")
GLANCE = """
import json, os, sys
def look(path):
    try:
        return os.listdir(path) if os.path.isdir(path) else open(path).read(20)
    except OSError as error:
        return error.strerror
print(json.dumps({"uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(), "folder": os.getcwd(),
                  "saw": [look(path) for path in sys.argv[1:]]}), flush=True)
"""
CALLS = """
import ctypes, errno, json, os, subprocess, socket, sys, threading
CLONE, KEYCTL, BPF = (56, 250, 321) if os.uname().machine == "x86_64" else (220, 219, 280)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    answer = getattr(libc, name)(*[ctypes.c_long(each) if isinstance(each, int) else each for each in arguments])
    return "done" if answer >= 0 else errno.errorcode[ctypes.get_errno()]
def opens(family):
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
found = {
    "mount": call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "user namespace": call("unshare", 0x10000000),
    "namespace of another": call("setns", 0, 0),
    "cloned user namespace": call("syscall", CLONE, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": call("syscall", 435, 0, 0),
    "trace": call("ptrace", 0x4206, os.getppid(), 0, 0),
    "keys": call("syscall", KEYCTL, 0, -3, 1),
    "bpf": call("syscall", BPF, 0, 0, 0),
    "io_uring": call("syscall", 425, 1, 0),
    "vsock": opens(40),
    "inet": opens(socket.AF_INET),
}
thread = threading.Thread(target=lambda: found.update(thread="done"))
thread.start()
thread.join()
found["program"] = subprocess.run(["echo", "done"], capture_output=True, text=True).stdout.strip()
print(json.dumps(found))
"""
MOUNTS = """
import json, os, re, sys
mounts = {}
for line in open("/proc/self/mountinfo", "rb"):
    fields = line.decode().split(" ")
    mounts[re.sub(r"\\\\040", " ", fields[4])] = fields[5].split(",")
open("mine", "w").write("own folder")
print(json.dumps(mounts), flush=True)
"""
BEFORE_5_12 = (
    "import sys; sys.path.append(sys.argv[2]); from ces_edge_agent import linux; linux._SYS_MOUNT_SETATTR = 9999\n"
)
ALONE, NETWORKED = pytest.param(False, id="host network"), pytest.param(True, id="own network")


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    async with node_in(tmp_path / "state") as node:
        yield node


@pytest.fixture
def settings_file() -> Iterator[Path]:
    """Beside the agent's settings as documented; readable by all, so that only hiding it keeps workers away."""
    folder = Path("/etc/ces")
    there = folder.exists()
    folder.mkdir(exist_ok=True)
    file = folder / f"test-{os.getpid()}.env"
    file.write_text("CES_JOIN_TOKEN=secret")
    yield file
    file.unlink()
    if not there:
        folder.rmdir()


@pytest.fixture
def home() -> Iterator[Path]:
    """A private folder in root's home, with something in it that its owner left open."""
    with tempfile.TemporaryDirectory(dir="/root", prefix="ces-rt-") as folder:
        file = Path(folder) / "id_ed25519"
        file.write_text("secret")
        file.chmod(0o644)
        Path(folder).chmod(0o755)
        yield file


async def glance(runtime: ProcessRuntime, node: Node, *paths: object) -> dict[str, object]:
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("python", "-c", GLANCE, *map(str, paths)))
    assert (await node.ended()).exit_code == 0, node.log()
    found: dict[str, object] = json.loads(node.log().splitlines()[-1])
    return found


@pytest.mark.parametrize("isolate", [ALONE, NETWORKED])
async def test_a_worker_reads_no_secret_of_root_or_the_agent(
    node: Node, settings_file: Path, home: Path, isolate: bool
) -> None:
    credentials = node.folder / "nats.creds"
    credentials.write_text("secret")
    runtime = await node.restart(isolate=isolate)
    seen = await glance(runtime, node, "/etc/shadow", home, settings_file, credentials, "/proc/1/environ")
    assert seen["uid"] != [0, 0, 0]
    assert seen["gid"] != [0, 0, 0]
    assert seen["groups"] == []
    missing = "No such file or directory"
    assert seen["saw"] == ["Permission denied", missing, missing, missing, "Permission denied"]


@pytest.mark.parametrize("isolate", [ALONE, NETWORKED])
async def test_two_allocations_are_two_users_and_neither_sees_the_others_folder(node: Node, isolate: bool) -> None:
    runtime = await node.restart(isolate=isolate)
    other = ENDPOINT.model_copy(update={"allocation": "a2"})
    await runtime.ensure_sandbox(other)
    keeps = "import os, signal; open('mine', 'w').write('secret'); print(os.getuid(), flush=True); signal.pause()"
    await runtime.start(worker("python", "-uc", keeps).model_copy(update={"allocation": "a2"}))
    folder = node.folder / "work" / "a2"
    seen = await glance(runtime, node, folder, folder / "mine")
    assert seen["saw"] == ["No such file or directory"] * 2
    uids = [(node.folder / "work" / allocation).stat().st_uid for allocation in ("a1", "a2")]
    assert len({*uids, 0}) == 3
    assert seen["uid"] == [uids[0]] * 3


@pytest.mark.parametrize("kernel", ["", pytest.param(BEFORE_5_12, id="before 5.12")])
@pytest.mark.parametrize("isolate", [ALONE, NETWORKED])
async def test_nothing_but_its_folder_and_scratch_can_be_written(
    node: Node, isolate: bool, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_SHIM", kernel + process._SHIM)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="ces rt ") as crowded:
        linux.mount("tmpfs", crowded, "tmpfs", linux.MS_NOEXEC)
        try:
            runtime = await node.restart(isolate=isolate)
            await runtime.ensure_sandbox(ENDPOINT)
            await runtime.start(worker("python", "-c", MOUNTS))
            assert (await node.ended()).exit_code == 0, node.log()
        finally:
            linux.unmount(crowded)
    mounts = json.loads(node.log().splitlines()[-1])
    assert {"noexec", "ro"} <= set(mounts[crowded])
    devices = {path for path in mounts if path.startswith("/dev/")}
    writable = {path for path, options in mounts.items() if "rw" in options} - devices
    # A worker whose program lies in /tmp has no /tmp of its own, and reads that of the machine.
    assert writable - {"/tmp"} == {str(node.folder / "work" / "a1")}
    loose = {path for path, options in mounts.items() if not {"nosuid", "nodev"} <= set(options)}
    assert loose - devices == {"/dev"}


async def test_a_restarted_worker_finds_what_it_left(node: Node) -> None:
    runtime = await node.restart()
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("sh", "-c", "umask 077; echo kept >state"))
    await node.ended()
    runtime = await node.restart()
    await runtime.start(worker("cat", "state").model_copy(update={"incarnation": 1}))
    assert (await node.ended("a1.1")).exit_code == 0
    assert node.log() == "kept\n"


async def test_an_agent_that_keeps_its_files_to_itself_hides_nothing_that_a_worker_needs(node: Node) -> None:
    before = os.umask(0o077)
    try:
        runtime = await node.restart(isolate=True)
        await runtime.ensure_sandbox(ENDPOINT)
        await runtime.start(worker("sh", "-c", "cat /etc/hosts && cd . && touch mine && ls"))
    finally:
        os.umask(before)
    assert (await node.ended()).exit_code == 0, node.log()
    assert "10.9.0.2\tt0\n" in node.log()


async def test_a_worker_makes_no_call_that_administers_the_kernel(node: Node) -> None:
    runtime = await node.restart()
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("python", "-c", CALLS))
    assert (await node.ended()).exit_code == 0, node.log()
    found = json.loads(node.log().splitlines()[-1])
    assert found.pop("clone3") == "ENOSYS"  # so that libraries fall back to clone
    harmless = {name: found.pop(name) for name in ("inet", "thread", "program")}
    assert harmless == dict.fromkeys(harmless, "done")
    assert found == dict.fromkeys(found, "EPERM")


async def test_an_interpreter_in_a_private_home_is_shown_and_nothing_beside_it(
    node: Node, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python of root's own, as pyenv and uv install it: its home is closed to all others."""
    programs = home.parent / "programs"
    programs.mkdir()
    shutil.copy("/bin/cat", programs / "show")
    (programs / "words").write_text("hello")
    monkeypatch.setattr(process, "environment", lambda: (str(programs),))
    runtime = await node.restart()
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker(str(programs / "show"), str(programs / "words"), str(home)))
    await node.ended()
    assert node.log().startswith("hello")
    assert "No such file or directory" in node.log()


async def test_programs_that_only_root_can_read_are_told_with_the_remedy(
    node: Node, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.chmod(0o700)
    monkeypatch.setattr(process, "environment", lambda: (str(home.parent),))
    with pytest.raises(BadSetup, match=rf"chmod -R o\+rX {home.parent}"):
        await node.restart()


async def test_an_agent_that_could_only_run_workers_as_root_refuses(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = linux.capabilities()
    monkeypatch.setattr(linux, "capabilities", lambda: held & ~(1 << 7))
    with pytest.raises(BadSetup, match=r"SETUID.*ordinary user"):
        await node.restart()


def test_no_process_becomes_a_worker_as_root() -> None:
    child = os.fork()
    if child == 0:
        try:
            linux.drop_privileges(0, 0)
        except PermissionError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_worker_with_a_gpu_is_in_the_groups_that_may_open_it(tmp_path: Path) -> None:
    devices = [tmp_path / name for name in ("nvidia0", "renderD128", "card0")]
    for device, group in zip(devices, (0, 105, 44), strict=True):
        device.touch()
        os.chown(device, 0, group)
    assert isolation.device_groups(map(str, devices)) == [44, 105]
    assert isolation.device_groups([]) == []


@pytest.fixture
def two_cards() -> Iterator[MachineCards]:
    """With device files of their own in /dev, numbered as no real card is."""
    paths = [Path(f"/dev/nvidia{number}") for number in (197, 198)]
    for path in paths:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    yield MachineCards([FoundCard(Card(id=f"GPU-{i}"), i, 197 + i) for i in (0, 1)])
    for path in paths:
        path.unlink()


@pytest.mark.parametrize(("which", "seen"), [(["GPU-0"], [197]), (["GPU-1"], [198]), (["GPU-0", "GPU-1"], [197, 198])])
async def test_a_worker_sees_no_card_but_its_own(
    node: Node, two_cards: MachineCards, which: list[str], seen: list[int]
) -> None:
    runtime = await node.restart(cards=two_cards)
    told = "import glob, os; print(sorted(glob.glob('/dev/nvidia19*')), os.environ.get('CUDA_VISIBLE_DEVICES'))"
    asking = worker("python", "-c", told).model_copy(update={"gpu": len(which), "cards": which})
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(asking)
    assert (await node.ended()).exit_code == 0
    assert node.log().strip() == f"{[f'/dev/nvidia{number}' for number in seen]} {','.join(which)}"


async def test_a_worker_that_asks_for_no_gpu_sees_none(node: Node, two_cards: MachineCards) -> None:
    runtime = await node.restart(cards=two_cards)
    await runtime.ensure_sandbox(ENDPOINT)
    await runtime.start(worker("python", "-c", "import glob; print(glob.glob('/dev/nvidia*'))"))
    assert (await node.ended()).exit_code == 0
    assert node.log().strip() == "[]"


async def test_a_worker_whose_card_is_gone_is_refused(node: Node, two_cards: MachineCards) -> None:
    runtime = await node.restart(cards=two_cards)
    with pytest.raises(Refused, match="card GPU-9 is not in this machine"):
        await runtime.prepare(worker("true").model_copy(update={"gpu": 1, "cards": ["GPU-9"]}))


async def test_only_a_worker_with_a_gpu_may_name_its_threads(node: Node, two_cards: MachineCards) -> None:
    """CUDA does, and does not begin where it cannot. Nothing else in /proc can be written."""
    told = """
import os
def writes(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError as error:
        return error.strerror
    return "yes"
print(writes("/proc/self/task/%d/comm" % os.getpid()), os.statvfs("/proc/sys").f_flag & os.ST_RDONLY)
"""
    runtime = await node.restart(cards=two_cards)
    for incarnation, (cards, seen) in enumerate([(["GPU-0"], "yes 1"), ([], "Read-only file system 1")]):
        more = {"gpu": len(cards), "cards": cards, "incarnation": incarnation}
        await runtime.ensure_sandbox(ENDPOINT)
        await runtime.start(worker("python", "-c", told).model_copy(update=more))
        assert (await node.ended(f"a1.{incarnation}")).exit_code == 0
        assert node.log().strip().splitlines()[-1] == seen

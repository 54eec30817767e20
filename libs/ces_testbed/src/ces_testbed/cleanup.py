"""Removal of everything of a cluster, however it was started and left, and the list of what remains."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from ces_client.context import forget_token
from ces_client.errors import BadInput
from ces_common.names import short_hash
from ces_testbed import owners
from ces_testbed.capability import why_no_engine
from ces_testbed.processes import Known, Records, end, marked
from ces_testbed.spec import Files

CONTAINER_LABEL = "ces.cluster"
CGROUPS = Path("/sys/fs/cgroup")
ABOVE = ("ces", "ces-lent")  # of workers, and of those on lent nodes
# SIGUSR1 makes a worker's shim end all that it started; for anything else it is one more way to be told.
_STEPS = ((signal.SIGTERM, 4.0), (signal.SIGUSR1, 2.0), (signal.SIGKILL, 5.0))


def remove_cluster(name: str, files: Files, *, containers: bool) -> None:
    """Idempotent. The logs stay; everything else in the cluster's folder goes. Raises TestbedError."""
    supervisor = Records(files.processes).living("supervisor")
    end([each for each in supervisor if each.pid != os.getpid()], ((signal.SIGTERM, 30.0), (signal.SIGKILL, 5.0)))
    mine = os.getpid()
    end([each for each in Records(files.processes).living() if each.pid != mine], _STEPS)
    remove_remains(name, files, containers=containers)
    owners.release(name, files)
    remove_files(files)


def remove_remains(name: str, files: Files, *, containers: bool) -> None:
    """What agents leave behind on purpose (workers, sandboxes, containers), and the hosts. Hosts and containers of
    another cluster that holds the name are left alone."""
    end(marked(files.root), _STEPS)
    end(_workers(files), ((signal.SIGKILL, 5.0),))
    for directory in _cgroups(name, files):
        _remove_tree(directory)
    if owners.other_owner(name, files) is not None:
        return
    if containers:
        _remove_containers(name)
    if has_namespaces():
        from ces_testbed.hosts import remove_hosts

        remove_hosts(name)


def remove_files(files: Files) -> None:
    """What a cluster wrote into its folder, but for its logs. A folder that holds no cluster is left alone."""
    if files.read_spec() is None:
        return
    _forget_context(files)
    for entry in files.own():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _forget_context(files: Files) -> None:
    """Remove this cluster from the user's context file: its token is void now."""
    with contextlib.suppress(OSError, BadInput):
        forget_token(files.token.read_text().strip())


def leftovers(name: str, files: Files, *, containers: bool) -> list[str]:
    """Everything of a cluster that is still on this machine, in words: processes, namespaces, devices, control groups,
    containers. Empty when it is clean."""
    found = [f"process {each.pid} ({each.name})" for each in [*marked(files.root), *_workers(files)]]
    found += [f"control group {directory}" for directory in _cgroups(name, files)]
    is_anothers = owners.other_owner(name, files) is not None
    if has_namespaces() and not is_anothers:
        from ces_testbed.hosts import traces

        found += [f"namespace or device {trace}" for trace in traces(name)]
    if containers and not is_anothers:
        found += [f"container {container.name}" for container in _containers(name)]
    return sorted(set(found))


def has_namespaces() -> bool:
    """Whether this process could have made namespaces at all."""
    return sys.platform == "linux" and os.geteuid() == 0


def _workers(files: Files) -> list[Known]:
    """Workers whose shim was killed: an agent marks each worker with a hash of its own state directory."""
    if sys.platform != "linux" or not files.agents.is_dir():
        return []
    marks = tuple(f"CES_WORKER={short_hash(str(agent))}/".encode() for agent in files.agents.iterdir())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            parts = (entry / "environ").read_bytes().split(b"\0")
            if any(part.startswith(marks) for part in parts) and (known := Known.of("worker", int(entry.name))):
                found.append(known)
    return [each for each in found if each.alive()]


def _cgroups(name: str, files: Files) -> list[Path]:
    """Control groups that agents of this cluster made, in every hierarchy."""
    if not CGROUPS.is_dir() or not files.agents.is_dir():
        return []
    groups = [f"{name}-{agent.name}-{short_hash(str(agent))}" for agent in files.agents.iterdir()]
    roots = [CGROUPS, *(entry for entry in CGROUPS.iterdir() if entry.is_dir() and not entry.is_symlink())]
    folders = [root / above / group for root in roots for above in ABOVE for group in groups]
    return [folder for folder in folders if folder.is_dir()]


def _remove_tree(directory: Path) -> None:
    """Control groups are removed from the leaves up, and by rmdir alone."""
    for folder, _, _ in os.walk(directory, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    with contextlib.suppress(OSError):
        directory.parent.rmdir()  # only if no other cluster has groups in it


def _containers(name: str) -> list[Any]:
    import docker

    client = docker.from_env()  # its containers go on using it
    filters = {"label": f"{CONTAINER_LABEL}={name}"}
    return list(client.containers.list(all=True, filters=filters, ignore_removed=True))


def _remove_containers(name: str) -> None:
    if why_no_engine() is not None:
        return
    from docker.errors import NotFound

    for container in _containers(name):
        with contextlib.suppress(NotFound):
            container.remove(force=True, v=True)

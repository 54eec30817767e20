"""The steps of ``ces up`` and ``ces down``: what is checked before, what is removed, what is resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from ces_client.cli import session
from ces_client.errors import bad_field
from ces_common.quantities import show_memory
from ces_common.runtime import RuntimeKind
from ces_testbed import logs, owners
from ces_testbed.cleanup import leftovers, remove_cluster, remove_remains
from ces_testbed.cli.display import show_progress
from ces_testbed.cli.errors import Failed
from ces_testbed.cli.options import Choice, NetworkChoice, checked_name, choose
from ces_testbed.errors import TestbedError
from ces_testbed.launch import Background
from ces_testbed.progress import News
from ces_testbed.spec import API_PORT, LOCALHOST, ClusterSpec, Files, default_root, free_port, port_is_free

DEFAULT_CLUSTER = "local"
END_S = 60.0
LEAST_FREE = 256 * 2**20
"""Bytes of disk below which no cluster is started: database, NATS and logs grow, and nothing works once it is full."""


def place(name: str | None, state: Path | None) -> tuple[str, Files]:
    cluster = checked_name(name or session.named_cluster() or DEFAULT_CLUSTER)
    return cluster, Files(state if state is not None else default_root(cluster))


def down_command(cluster: str, files: Files) -> str:
    """The command that ends this cluster."""
    words = ["ces down"]
    if cluster != DEFAULT_CLUSTER:
        words.append(f"--name {cluster}")
    if files.root != default_root(cluster).resolve():
        words.append(f"--state {files.root}")
    return " ".join(words)


def check_folder(files: Files) -> None:
    """Raises BadInput where a cluster's files cannot lie there."""
    if files.root.is_dir() and files.read_spec() is None and not all(map(logs.are_logs, files.root.iterdir())):
        raise bad_field("The folder cannot be used", "--state", f"{files.root} holds other things", "name another one")
    place = next(folder for folder in (files.root, *files.root.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE:
        problem = f"{show_memory(free)} are free where {files.root} lies; a cluster needs {show_memory(LEAST_FREE)}"
        raise bad_field("The disk is full", "--state", problem, "make room, or name a folder on another disk")


def make_folder(files: Files) -> None:
    """Raises BadInput where the cluster's folder cannot be made or written."""
    try:
        files.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = files.root / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        problem = f"{files.root} cannot be written: {error.strerror}"
        raise bad_field("The folder cannot be used", "--state", problem, "name another one with --state") from error


def left_behind(files: Files) -> ClusterSpec | None:
    """The cluster that was up here and was not ended; None where there is none."""
    return files.read_spec() if files.read_addresses() is not None else None


def choose_again(kept: ClusterSpec) -> Choice:
    """Raises BadInput where this machine, or this user, can no longer do what the cluster was started with."""
    network = NetworkChoice.TC if kept.network == "tc" else NetworkChoice.NONE
    return choose(RuntimeKind(kept.runtime), network)


def refuse_changes(kept: ClusterSpec, files: Files, changed: list[str]) -> None:
    """``changed``: options that say otherwise than the cluster to be resumed. Raises BadInput if there are any."""
    if changed:
        problem = f"{files.root} holds one that was started otherwise; its jobs would be lost"
        remedy = f"leave {', '.join(changed)} out to resume it; `{down_command(kept.name, files)}` or --fresh drops it"
        raise bad_field(f"The cluster {kept.name} was left behind", ", ".join(changed), problem, remedy)


def take_name(cluster: str, files: Files, *, force: bool) -> None:
    """Raises BadInput where another cluster on this machine has the name, unless it is to be ended."""
    owner = owners.other_owner(cluster, files)
    if owner is None:
        return
    if not force:
        remedy = f"choose another --name, end it with `ces down --name {cluster} --state {owner.state}`, or --force"
        raise bad_field(f"The name {cluster} is taken on this machine", "--name", f"it is that of {owner}", remedy)
    remove(cluster, Files(Path(owner.state)), containers=True)


def clear(cluster: str, files: Files, screen: Console, *, containers: bool, fresh: bool) -> None:
    """Remove what an earlier cluster left, and set its logs aside."""
    if files.read_spec() is not None:
        what = "an earlier cluster" if fresh else "a start that did not finish"
        screen.print(Text(f"removing what {what} left in {files.root}"), soft_wrap=True)
    remove(cluster, files, containers=containers)
    logs.rotate(files)
    if files.root == default_root(cluster).resolve():
        logs.prune(files.root.parent)


def api_port(port: int | None, screen: Console) -> int:
    """The port asked for, else the usual one if it is free, else any, which is said."""
    if port is not None:
        return port
    if port_is_free("", API_PORT):
        return API_PORT
    other = free_port(LOCALHOST, set())
    screen.print(Text(f"port {API_PORT} is taken: the API listens on {other} (--port names one)", style="yellow"))
    return other


def start(background: Background, screen: Console) -> News:
    """Raises BadInput where the cluster's folder cannot be written."""
    try:
        background.start()
    except OSError as error:
        problem = f"{error.filename or background.files.root} cannot be written: {error.strerror}"
        raise bad_field("The folder cannot be used", "--state", problem, "name another one with --state") from error
    try:
        last = show_progress(background.news(), screen)
    except KeyboardInterrupt:
        background.ask_to_end()
        screen.print("interrupted; taking everything away again")
        background.wait(END_S)
        raise typer.Exit(130) from None
    if last.kind != "ready":
        background.wait(END_S)
    return last


def take_away(spec: ClusterSpec, files: Files, *, keep_state: bool) -> None:
    """After a start that failed: what its own process did not remove, because it was killed or the disk was full."""
    containers = spec.runtime == RuntimeKind.DOCKER
    if keep_state:
        if leftovers(spec.name, files, containers=containers):
            remove_remains(spec.name, files, containers=containers)
    elif files.read_spec() is not None or leftovers(spec.name, files, containers=containers):
        remove(spec.name, files, containers=containers)


def remove(cluster: str, files: Files, *, containers: bool) -> None:
    try:
        remove_cluster(cluster, files, containers=containers)
    except TestbedError as error:
        raise Failed(f"The cluster {cluster} could not be removed", str(error)) from error

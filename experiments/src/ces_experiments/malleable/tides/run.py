"""Run a day twice for each seed, once with owners alone and once with a malleable job beside them, on emulated hosts
whose agents lend them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_common.cgroups import Group, hierarchies
from ces_common.jobfile import JobFile
from ces_experiments.common.conditions import settled, wait_for
from ces_experiments.common.emulated import emulated, star
from ces_experiments.common.job_runs import after_each, each_run
from ces_experiments.common.report import Found
from ces_experiments.malleable.tides import days
from ces_experiments.malleable.tides.days import OwnerDay
from ces_experiments.malleable.tides.outcome import ALONE, BESIDE, Pieces, record
from ces_experiments.malleable.tides.owner import Orders, rounds_of_piece
from ces_experiments.malleable.tides.watch import Watch
from ces_testbed.capability import why_no_tc
from ces_testbed.cluster import Cluster
from ces_testbed.errors import TestbedError
from ces_testbed.services import CENTRAL, agent_name

FIRST_SEED = 1
SOON_S = 2.0  # in which the owners' programs start, before midnight
END_S = 60.0  # how long they have to tell what they did
RESIZE_S = 2  # a day has two minutes here
QUIET_S = 1
BELOW, RECLAIM = 0.45, 0.55  # of what an owner ever needs: lent below, reclaimed above
GRACE_S = 5
STEP_S = (0.02, 0.18, 0.0)  # a + b/n + c(n - 1) with n workers
STEPS = 10**6
LEAST_URGENT = 19  # nice(2)


@dataclass(frozen=True)
class Question:
    """``length_s``: of a day, by the clock."""

    seeds: Sequence[int]
    length_s: float
    nodes: int

    @staticmethod
    def of(*, seeds: int, **values: Any) -> Question:
        """``seeds``: how many."""
        return Question(seeds=tuple(range(FIRST_SEED, FIRST_SEED + seeds)), **values)


def job_file(name: str, nodes: int) -> JobFile:
    """It takes as many devices as it is given."""
    command = ["python", "-m", "ces_experiments.malleable.tides.worker", str(STEPS), *map(str, STEP_S)]
    task = {"name": "w", "command": command, "resources": {"cpu": "1", "memory": "64Mi"}}
    elastic = {
        "group": "w",
        "workers": {"min": 1, "max": nodes},
        "grace": GRACE_S,
        "speed": {"unit": "steps", "total": STEPS, "hint": {1: 5.0, nodes: round(1 / (0.02 + 0.18 / nodes), 2)}},
    }
    flows = {"topology": "star", "bandwidth": {"min": "1Mbit", "max": "5Mbit"}}
    return JobFile.model_validate({"name": name, "tasks": [task], "flows": flows, "elastic": elastic})


def most(cores: int) -> float:
    """What an owner ever needs, as a share of a machine on which several of them and all else run: of many cores less,
    since its programs are one process."""
    return min(0.1, 0.5 / cores)


@contextmanager
def owned(cluster: Cluster, nodes: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Every host has an owner, with a control group of its own, and is lent; gives the groups by host. Raises
    TestbedError."""
    roots, percent = hierarchies(), 100 * most(os.cpu_count() or 1)
    with ExitStack() as stack:
        groups = {}
        for node in nodes:
            group = Group(roots, f"ces-owner-{cluster.spec.name}-{node}")
            stack.callback(group.remove)
            stack.callback(group.kill)
            if "cpu" not in group.create(1000, 2**30, 16):
                raise TestbedError("control groups cannot be made here: ces bench tides needs the cpu controller")
            groups[node] = group.name
            settings = {
                "CES_LENT": "true",
                "CES_LENT_QUIET_S": str(QUIET_S),
                "CES_OWNER_GROUP": group.name,
                "CES_LENT_BELOW": f"{BELOW * percent:.3f}",
                "CES_RECLAIM_AT": f"{RECLAIM * percent:.3f}",
            }
            cluster.restart(agent_name(node), settings)
        with cluster.client() as client:
            wait_for(lambda: all(_lent(cluster, client, node) for node in nodes), "all devices are lent")
        yield groups


def set_apart(cluster: Cluster) -> None:
    """Central services run on no device that somebody lends. Here they share its cores, so they take what owners and
    agents leave. Raises TestbedError."""
    for name in CENTRAL:
        if (pid := cluster.supervisor.pid(name)) is None:
            raise TestbedError(f"{name} does not run")
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.setpriority(os.PRIO_PROCESS, int(thread.name), LEAST_URGENT)


def _lent(cluster: Cluster, client: Client, node: str) -> bool:
    """Whether its agent has lent it, and the manager knows."""
    try:
        told = json.loads((cluster.files.agent(node) / "lent.json").read_text())
    except FileNotFoundError:  # it was not lent before, and its agent is starting
        return False
    return told["lent"] and any(each.name == node and not each.reclaimed for each in client.nodes.list())


def a_day(
    cluster: Cluster,
    client: Client,
    groups: Mapping[str, str],
    owners: Sequence[OwnerDay],
    length_s: float,
    rounds: int,
    *,
    beside: bool,
) -> dict[str, Any]:
    """Midnight to midnight. Raises TestbedError."""
    begins, cores = time.monotonic() + SOON_S, os.cpu_count() or 1
    job = client.jobs.submit(job_file(f"tide-{int(begins)}", len(groups))).id if beside else None
    watch = Watch(client, cluster.spec.name, list(groups), job)
    with ExitStack() as stack:
        programs = []
        for group, day in zip(groups.values(), owners, strict=True):
            orders = Orders(group, asdict(day), begins, length_s, most(cores) * cores, rounds)
            command = [sys.executable, "-m", "ces_experiments.malleable.tides.owner", json.dumps(asdict(orders))]
            program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            stack.callback(program.wait)
            stack.callback(program.kill)
            programs.append(program)
        watch.until(begins + length_s, begins)
        pieces = [_told(program) for program in programs]
    if job is not None:
        client.jobs.cancel(job)
        wait_for(lambda: settled(client, 0), "nothing of the job is left")
    return record(watch, pieces, length_s)


def _told(program: subprocess.Popen[str]) -> Pieces:
    try:
        said, _ = program.communicate(timeout=END_S)
    except subprocess.TimeoutExpired as error:
        raise TestbedError(f"the programs of an owner did not end within {END_S:g} s") from error
    if program.returncode:
        raise TestbedError(f"the programs of an owner failed with exit code {program.returncode}")
    found: Pieces = json.loads(said)
    return found


def runs(question: Question) -> Generator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each day, on a cluster of its own: agents remember how often they were reclaimed. A piece of work is the same in
    all of them. Raises TestbedError."""
    rounds = rounds_of_piece()
    topology = star(question.nodes, 1, "1Gi", "100Mbit")
    names = [node.name for node in topology.nodes if node.cpu]

    def run(seed: int, way: str) -> dict[str, Any]:
        owners, settings = days.draw(seed, len(names)), {"CES_RESIZE_S": str(RESIZE_S)}
        with ExitStack() as stack:
            cluster = stack.enter_context(emulated("tides", topology, settings=settings))
            client, groups = stack.enter_context(cluster.client()), stack.enter_context(owned(cluster, names))
            set_apart(cluster)
            found = a_day(cluster, client, groups, owners, question.length_s, rounds, beside=way == BESIDE)
        return found | {"owners": [asdict(owner) for owner in owners]}

    for found in each_run(question.seeds, [ALONE, BESIDE], run):
        yield found, {}


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each day. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench tides runs on emulated hosts: {reason}")
    lending = {"most": most(os.cpu_count() or 1), "below": BELOW, "reclaim": RECLAIM, "quiet_s": QUIET_S}
    known = {"question": asdict(question), "setting": days.setting() | lending}
    yield from after_each(runs(question), 2 * len(question.seeds), known, failure_of, progress)


def failure_of(audit: Mapping[str, Any], done: Sequence[Mapping[str, Any]]) -> str | None:
    """What is wrong, in words. Pure."""
    idle = [run["seed"] for run in done if run["way"] == BESIDE and not run["steps"]]
    return f"the job took no step in the day of seed {idle[0]}" if idle else None

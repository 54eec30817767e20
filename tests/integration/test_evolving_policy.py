"""A policy that evolves in a running cluster: decisions are logged, the shadow promotes, commands train, compare and
take back, and the scheduler follows without a restart."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from evolving_policies import added, begun, logged
from fault_cluster import FaultCluster, running, star, wait_for
from typer.testing import CliRunner

from ces_core.evolution.decision_log import DecisionLogError, Logged, read_log
from ces_core.evolution.folder import EvolutionFolder
from ces_core.evolution.pairing import Pair
from ces_core.evolution.state import BASE
from ces_rl.evolve.commands import evolve

SOLVER = "imitation-greedy"
HOUR_S = 3600.0


def job(name: str) -> dict[str, Any]:
    task = {"name": "t", "replicas": 2, "command": ["true"], "resources": {"cpu": "200m", "memory": "64Mi"}}
    return {"name": name, "tasks": [task], "flows": {"topology": "ring", "bandwidth": {"min": "2Mbit", "max": "9Mbit"}}}


def ces_evolve(folder: EvolutionFolder, *words: str, code: int = 0) -> str:
    answer = CliRunner().invoke(evolve, [*words, "--folder", str(folder.path)], env={"COLUMNS": "200"})
    assert answer.exit_code == code, answer.output + repr(answer.exception)
    return answer.output


def decided(cluster: FaultCluster, folder: EvolutionFolder, name: str) -> Logged:
    """What is on record of a new job that has run."""
    started = f"{cluster.submit(job(name))}.1"
    cluster.finish(started.removesuffix(".1"))
    found: list[Logged] = []

    def on_record() -> bool:
        found[:] = [each for each in read_log(folder.log).decisions if each.name == started]
        return bool(found)

    wait_for(on_record, f"{name} is on record")
    return found[0]


def live_in(cluster: FaultCluster) -> str:
    """The version that the scheduler said last that it decides with."""
    lines = cluster.cluster.files.log("scheduler").read_text().splitlines()
    found: str = [json.loads(line)["version"] for line in lines if '"a policy is live"' in line][-1]
    return found


def shadows(folder: EvolutionFolder) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if "ces_scheduler.shadow" in command and str(folder.path) in command:
            found.append(process)
    return found


def promoted(folder: EvolutionFolder, version: str) -> bool:
    """The shadow runs when nothing else wants to, which on a busy machine may be never: here it is only nice."""
    for shadow in shadows(folder):
        with suppress(ProcessLookupError):
            os.sched_setscheduler(shadow.pid, os.SCHED_OTHER, os.sched_param(0))
    return folder.state().live == version


@pytest.mark.needs("torch")
@pytest.mark.usefixtures("training_compiled")
def test_log_shadow_promotion_training_comparison_and_return_in_a_running_cluster(tmp_path: Path) -> None:
    folder = begun(tmp_path / "evolution", SOLVER)
    logged(folder.log, range(45), first_s=time.time() - HOUR_S)
    name = added(folder, made_s=time.time()).name
    gained = [Pair(f"x{number}.1", 0.02 + 0.001 * (number % 2), False, (1.0, 1.0)) for number in range(400)]
    folder.keep(folder.candidacy(name, folder.state()), gained)
    settings = {"CES_SOLVER": SOLVER, "CES_EVOLUTION": str(folder.path), "CES_EVOLUTION_MODE": "auto"}
    with running("evolving", tmp_path / "cluster", star(3), network="none", settings=settings) as cluster:
        wait_for(lambda: promoted(folder, name), "the shadow promotes what has gained")
        assert folder.state().history[-1].why.startswith("gain +0.02")
        assert len(shadows(folder)) == 1
        first = decided(cluster, folder, "first")
        assert first.line["solver"] == SOLVER
        assert first.at_s >= (folder.state().promoted_s or 0.0)
        shown = cluster.client.policy.get()
        assert (shown.live, shown.former) == (name, BASE)
        assert (shown.versions[0].role, shown.changes[0].what) == ("live", "promoted")
        assert live_in(cluster) == name

        assert "v2: placement-" in ces_evolve(folder, "train", "--updates", "1", "--episodes", "2")
        assert "decisions are compared, and 100 are least" in ces_evolve(folder, "replay", "v2")
        assert "v2 is not promoted" in ces_evolve(folder, "promote", "v2", code=2)
        assert folder.state().live == name

        assert f"{BASE} is live again: too hot" in ces_evolve(folder, "rollback", "--why", "too hot")
        decided(cluster, folder, "second")
        assert live_in(cluster) == BASE
        assert f"{name} promoted: gain +0.02" in ces_evolve(folder, "status")

        (folder.log / "decisions-0.log").write_text("a diary\n")
        with pytest.raises(DecisionLogError, match="is no log of decisions"):
            read_log(folder.log)
        cluster.finish(cluster.submit(job("beside-a-foreign-file")))
    wait_for(lambda: not shadows(folder), "the shadow ends with the scheduler")

"""Run the experiment: for each seed its background load, under it each scheduler's jobs one after the other."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from typing import Any

from rich.progress import Progress

from ces_client import Client
from ces_common.states import JOB_OVER, JobState
from ces_core.registry import DEFAULT, get_solver
from ces_experiments.common.conditions import PATIENCE_S, settled, wait_for
from ces_experiments.common.console import told
from ces_experiments.common.emulated import emulated, restart
from ces_experiments.common.machine import CoreTime
from ces_experiments.common.report import Found
from ces_experiments.testbed import scenario as scenarios
from ces_experiments.testbed.question import PLAIN, Question
from ces_experiments.testbed.trial import enforced, run_job
from ces_testbed.capability import why_no_tc
from ces_testbed.cluster import Cluster
from ces_testbed.errors import TestbedError
from ces_testbed.services import SCHEDULER

NETWORK = "network-ctl"
STILL_S = 10.0  # a node that has just missed a report tells again in this time


class Bench:
    """A cluster of the scenario's hosts, on which schedulers and the network's ways change while it runs."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self._cluster, self._client = cluster, client
        self._scheduler, self._reserve = DEFAULT, True  # as a cluster starts
        self._background: str | None = None
        self._tasks = 0

    def load(self, scenario: scenarios.Scenario) -> None:
        """Put the scenario's background load on the hosts. The default scheduler places it: its places and rates are
        fixed, so that any would do the same."""
        self._decide(DEFAULT)
        self._share(reserve=True)
        job = self._client.jobs.submit(scenario.background).id
        wait_for(lambda: self._client.jobs.get(job).state == JobState.RUNNING, "the background load runs")
        self._background, self._tasks = job, len(scenario.background.tasks)
        wait_for(lambda: enforced(self._client.jobs.flows(job), reserve=True), "its flows are measured")

    def unload(self) -> None:
        if self._background is not None:
            self._client.jobs.cancel(self._background)
            self._background = None
            wait_for(lambda: settled(self._client, 0), "the background load is gone")

    def prepare(self, scheduler: str) -> None:
        self._decide(scheduler)
        self._share(reserve=scheduler != PLAIN)

    def run(self, scheduler: str, scenario: scenarios.Scenario, architecture: str, limit_s: float) -> dict[str, Any]:
        assert self._background is not None
        asked = scenario.jobs[architecture]
        job = scenarios.without_reservations(asked) if scheduler == PLAIN else asked
        found = run_job(self._client, job, asked, self._background, limit_s)
        if found["placed"] and found["solver"] != get_solver(scheduler).name:
            raise TestbedError(f"{found['solver']} decided, not {scheduler}: {SCHEDULER} has restarted by itself")
        if self._client.jobs.get(self._background).state in JOB_OVER:
            raise TestbedError("the background load has ended by itself: the run took too long")
        wait_for(lambda: settled(self._client, self._tasks), "the job's workers are gone")
        self._unchanged(self._background)
        return found

    def _unchanged(self, background: str) -> None:
        """Raises TestbedError where the network is no longer as it was set before the run."""
        kept = "keeps" if self._reserve else "ignores"
        wait_for(
            lambda: enforced(self._client.jobs.flows(background), self._reserve),
            f"after the run, as before it, every link {kept} what is reserved: {NETWORK} has restarted by itself?",
            STILL_S,
        )

    def _decide(self, scheduler: str) -> None:
        if scheduler != self._scheduler:
            restart(self._cluster, SCHEDULER, {"CES_SOLVER": scheduler})
            self._scheduler = scheduler

    def _share(self, *, reserve: bool) -> None:
        """Have the network keep reservations or not, and wait until every link does."""
        if reserve == self._reserve:
            return
        restart(self._cluster, NETWORK, {"CES_RESERVE": str(reserve)})
        self._reserve = reserve
        if self._background is not None:
            job = self._background
            wait_for(lambda: enforced(self._client.jobs.flows(job), reserve), "every link knows what is reserved")


def name_of(seed: int, architecture: str, scheduler: str) -> str:
    return f"{seed} {architecture} {scheduler}"


def runs(question: Question) -> Generator[dict[str, Any]]:
    """One run after the other. Raises TestbedError."""
    longest_s = (question.limit_s + PATIENCE_S) * len(question.schedulers) * len(question.architectures) + PATIENCE_S
    with emulated("testbed", scenarios.topology()) as cluster, cluster.client() as client:
        bench = Bench(cluster, client)
        for seed in question.seeds:
            scenario = scenarios.scenario(seed, list(question.architectures), question.accuracy, longest_s)
            bench.load(scenario)
            for scheduler in question.in_order(seed):
                bench.prepare(scheduler)
                for architecture in question.architectures:
                    before = CoreTime.now()
                    found = bench.run(scheduler, scenario, architecture, question.limit_s)
                    found["stolen"] = CoreTime.now().stolen_since(before)
                    key = {"seed": seed, "architecture": architecture, "scheduler": scheduler}
                    yield key | {"accuracy": question.accuracy} | found
            bench.unload()


def measure(question: Question, progress: Progress) -> Iterator[Found]:
    """What is known after each run. Raises TestbedError."""
    if (reason := why_no_tc()) is not None:
        raise TestbedError(f"ces bench testbed shapes real links: {reason}")
    step, started = told(progress, question.runs), time.monotonic()
    done: dict[str, Any] = {}
    with closing(runs(question)) as measured:
        for found in measured:
            name = name_of(found["seed"], found["architecture"], found["scheduler"])
            done[name] = found
            seeds = list(dict.fromkeys(each["seed"] for each in done.values()))
            results = {"question": asdict(question) | {"seeds": seeds}, "setting": scenarios.setting(), "runs": done}
            step(name)
            yield Found(results | {"took_s": round(time.monotonic() - started)})

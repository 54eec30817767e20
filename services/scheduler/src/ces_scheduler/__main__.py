"""python -m ces_scheduler"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    gc.disable()  # what is imported stays: run_service looks for garbage from then on

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from ces_common.bus.port import Bus
from ces_common.follower import follow
from ces_common.quantities import Memory
from ces_common.queuefile import QueueSettings, read_queue
from ces_common.service import BadSetup, run_service
from ces_core.evolution.folder import EvolutionFolder, FolderError
from ces_core.model.errors import QueuePolicyError, UnknownSolverError
from ces_core.queue.policies import CES_MULTI, get_queue_policy
from ces_core.queue.record import Record, Recorder
from ces_core.registry import DEFAULT, get_solver
from ces_core.solver import Learned
from ces_scheduler.card_value import WEIGHT
from ces_scheduler.cycle_input import parameters_of
from ces_scheduler.cycle_run import Placing
from ces_scheduler.live_policy import LivePolicy, Setup
from ces_scheduler.service import REFILL_S, RESIZE_S, SERVICE, Scheduler
from ces_scheduler.shadow_process import ShadowProcess
from ces_scheduler.solver_choice import Choice, choose
from ces_scheduler.start_amounts import USUAL, Rule

LOG_BYTES = 64 << 20
Mode = Literal["log", "shadow", "auto"]
"""``log``: decisions are logged; ``shadow``: candidates are compared, too; ``auto``: and promoted, and taken back."""


class SchedulerSettings(QueueSettings):
    solver: str = DEFAULT  # one that `ces solvers` lists
    solve_time_limit_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.02  # 0: as the solver sees fit
    refill_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = REFILL_S  # least time between two re-fills
    resize_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = RESIZE_S  # least time between two of one job
    paths: Annotated[int, Field(ge=0)] = 0  # new flows take one of this many shortest ones; 0: a hop-shortest one
    policy: Path | None = None  # None: the one that ships with the core
    amounts: Rule = USUAL  # with how much CPU jobs begin where CES chooses it
    card_weight: Annotated[float, Field(ge=0, le=1)] = WEIGHT  # of a GPU card of fragments, beside the composite
    queue_policy: str = CES_MULTI  # decides over the queue; other packages may add some
    queue_record: Path | None = None  # where to append what goes into each cycle of the queue and comes out of it
    evolution: Path | None = None  # the folder of a policy that evolves; None: nothing is logged, and none does
    evolution_mode: Mode = "log"  # what is done there beside logging
    evolution_log: Annotated[Memory, Field(ge=2**20, le=2**50)] = LOG_BYTES  # bound of the log; the oldest goes

    @field_validator("policy", "queue_record", "evolution", mode="before")
    @classmethod
    def _none(cls, value: object) -> object:
        return value or None


async def run(settings: SchedulerSettings, stop: asyncio.Event) -> None:
    try:
        choice = choose(settings.solver, settings.policy)
    except UnknownSolverError as error:
        raise BadSetup(f"CES_SOLVER: {error}") from None
    try:
        policy = get_queue_policy(settings.queue_policy)
    except QueuePolicyError as error:
        raise BadSetup(f"CES_QUEUE_POLICY: {error}") from error
    parameters = parameters_of(read_queue(settings.queue))
    limit_s, paths = settings.solve_time_limit_s or None, settings.paths or None
    placing = Placing(
        choice.solver,
        parameters,
        limit_s,
        choice.fallback,
        paths,
        policy,
        settings.amounts,
        card_weight=settings.card_weight,
    )
    with recorder(settings.queue_record) as record, evolving(settings, choice) as live, shadowed(settings):

        def scheduler(bus: Bus) -> Scheduler:
            return Scheduler(
                bus,
                placing,
                settings.resync_s,
                refill_s=settings.refill_s,
                resize_s=settings.resize_s,
                record=record,
                live=live,
            )

        await follow(SERVICE, settings, stop, scheduler, remark=choice.fallback)


@contextmanager
def recorder(file: Path | None) -> Iterator[Record | None]:
    """Writes every cycle of the queue to the file; None without one. Raises BadSetup."""
    if file is None:
        yield None
        return
    try:
        record = Recorder(file)
    except OSError as error:
        raise BadSetup(f"CES_QUEUE_RECORD: {file} cannot be written: {error.strerror or error}") from error
    with closing(record):
        yield record


@contextmanager
def evolving(settings: SchedulerSettings, base: Choice) -> Iterator[LivePolicy | None]:
    """The policy that evolves in the folder of the settings; None without one. Raises BadSetup."""
    if settings.evolution is None:
        yield None
        return
    asked = get_solver(settings.solver)
    if not isinstance(asked, Learned):
        raise BadSetup(
            f"CES_EVOLUTION: {asked.name} asks no policy that could evolve: set CES_SOLVER to another, or leave it out"
        )
    folder = EvolutionFolder(settings.evolution)
    live = LivePolicy(
        Setup(folder, asked, base, settings.policy, settings.evolution_log, returns=settings.evolution_mode == "auto")
    )
    try:
        live.begin()
    except FolderError as error:
        raise BadSetup(f"CES_EVOLUTION: {error}") from error
    except OSError as error:
        raise BadSetup(f"CES_EVOLUTION: {folder.path} cannot be written: {error.strerror or error}") from error
    with closing(live):
        yield live


@contextmanager
def shadowed(settings: SchedulerSettings) -> Iterator[None]:
    """With a process beside this one that decides logged problems again, if the settings want it."""
    if settings.evolution is None or settings.evolution_mode == "log":
        yield
        return
    with ShadowProcess(settings.evolution, auto=settings.evolution_mode == "auto"):
        yield


if __name__ == "__main__":
    run_service(SERVICE, SchedulerSettings, run)

"""A solver is compiled before it decides."""

from __future__ import annotations

import asyncio
import time

import structlog

from ces_core.compiled.jit import COMPILED
from ces_core.solver import Solver, with_lookahead
from ces_core.warm_up import warm_up

log = structlog.get_logger()


async def compile_ahead(solver: Solver) -> None:
    """Returns when the solver, and its variant that looks ahead, are compiled. One that fails is left to decisions:
    they report the same for their job, and another job may go well."""
    started = time.perf_counter()
    try:
        await asyncio.to_thread(warm_up, solver)
        await asyncio.to_thread(warm_up, with_lookahead(solver))
    except Exception:
        log.exception("the solver failed while it was warmed up", solver=solver.name)
    seconds = round(time.perf_counter() - started, 2)
    log.info("the solver is ready", solver=solver.name, compiled=COMPILED, seconds=seconds)

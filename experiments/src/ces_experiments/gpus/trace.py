"""The published trace for experiments: what is wrong with it ends the command, named."""

from __future__ import annotations

import functools

import typer

from ces_core.gpus.model import GpuNode, GpuTask
from ces_experiments.common import options
from ces_sim.gpus.traces import TraceError, lists, read_nodes, read_tasks


def known_lists(flag: str, text: str | None) -> tuple[str, ...]:
    """The named lists, or all that are there. Raises typer.BadParameter, naming the option."""
    try:
        known = lists()
        nodes()
    except TraceError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from error
    if not known:
        raise typer.BadParameter("CES_DATA_DIR holds no list of pods", param_hint=flag)
    names = known if text is None else options.names(flag, text, known)
    for name in names:
        try:
            tasks(name)
        except TraceError as error:
            raise typer.BadParameter(str(error), param_hint=flag) from error
    return names


@functools.cache
def nodes() -> tuple[GpuNode, ...]:
    """Raises TraceError."""
    return tuple(read_nodes())


@functools.cache
def tasks(name: str) -> tuple[GpuTask, ...]:
    """Raises TraceError."""
    return tuple(read_tasks(name))

"""Energy as tables and in words, always with how it is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH
from ces_client.view.tables import plain_table
from ces_common.messages.energy import Energy, JobEnergy, NodeEnergy

UNKNOWN: Final = "unknown"
REMEDY: Final = (
    "unknown: that machine has no meter; CES_POWER_IDLE and CES_POWER_PEAK, set on its agent, make a model of it"
)
_UNITS: Final = ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"))


def joules_text(joules: float) -> str:
    """``850 J``, ``12.3 kJ``."""
    for size, unit in _UNITS:
        if joules >= size:
            return f"{joules / size:.3g} {unit}"
    return f"{joules:.3g} J"


def watts_text(watts: float | None) -> str:
    return DASH if watts is None else f"{watts:.3g} W"


def source_text(energy: Energy | None) -> str:
    """``measured``, ``modelled``, or how much of each."""
    if energy is None:
        return UNKNOWN
    if not energy.joules:
        return DASH
    if not energy.modelled:
        return "measured"
    if not energy.measured:
        return "modelled"
    share = energy.measured / energy.joules
    return f"measured {share:.0%}, modelled {1 - share:.0%}"


def energy_text(energy: Energy | None) -> str:
    """``12.3 kJ measured, 45 W now``."""
    if energy is None:
        return UNKNOWN
    known = ((energy.measured, "measured"), (energy.modelled, "modelled"))
    parts = [f"{joules_text(joules)} {source}" for joules, source in known if joules] or ["none yet"]
    return ", ".join(parts if energy.watts is None else [*parts, f"{watts_text(energy.watts)} now"])


def nodes_table(nodes: Sequence[NodeEnergy]) -> Table:
    """JOBS: what was attributed to jobs; SYSTEM: the rest."""
    numbers = ("NOW", "ENERGY", "JOBS", "SYSTEM")
    table = plain_table("NODE", "SOURCE", "METER", *numbers, right=numbers, wrapped=(), optional=("METER",))
    for each in nodes:
        if each.energy is None:
            table.add_row(each.node, UNKNOWN, *[DASH] * 5)
            continue
        table.add_row(
            each.node,
            source_text(each.energy),
            each.meter or DASH,
            watts_text(each.energy.watts),
            joules_text(each.energy.joules),
            joules_text(each.other_jobs.joules),
            joules_text(each.system.joules),
        )
    return table


def nodes_parts(nodes: Sequence[NodeEnergy]) -> RenderableType:
    """The table, and what would make known what is not."""
    table = nodes_table(nodes)
    return Group(table, Text(), Text(REMEDY, style="dim")) if any(each.energy is None for each in nodes) else table


def node_parts(view: NodeEnergy) -> RenderableType:
    """What a node has used, and who."""
    head = Text(view.node, style="bold").append(f"  {energy_text(view.energy)}", style="not bold")
    if view.energy is None:
        return Group(head, Text("nothing measures it, and its agent was not told what it uses", style="dim"))
    table = plain_table("USED BY", "SOURCE", "ENERGY", "SHARE", right=("ENERGY", "SHARE"), wrapped=())
    parts = [(each.name, each.energy) for each in view.jobs]
    if view.other_jobs.joules:
        parts.append(("other jobs", view.other_jobs))
    for name, energy in [*parts, ("system", view.system)]:
        share = energy.joules / view.energy.joules if view.energy.joules else 0.0
        table.add_row(name, source_text(energy), joules_text(energy.joules), f"{share:.1%}")
    return Group(head, Text(), table)


def job_parts(view: JobEnergy) -> RenderableType:
    """What was attributed to a job, task by task."""
    head = Text(view.name, style="bold").append(f"  {energy_text(view.energy)}", style="not bold")
    if not view.tasks:
        return Group(head, Text("none of its tasks has run yet", style="dim"))
    table = plain_table("TASK", "NODE", "ATTEMPT", "SOURCE", "ENERGY", right=("ATTEMPT", "ENERGY"), wrapped=())
    for task in view.tasks:
        energy = DASH if task.energy is None else joules_text(task.energy.joules)
        table.add_row(task.task, task.node, str(task.attempt), source_text(task.energy), energy)
    parts: list[RenderableType] = [head, Text(), table]
    if view.unknown:
        parts.append(Text(f"{view.unknown} of them not counted: unknown on their nodes", style="yellow"))
    return Group(*parts)

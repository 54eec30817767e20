"""The dominant reason why a job has no place, as data. Callers that show it bring the units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

FormatQuantity = Callable[[str, float], str]
"""Turns a resource (``cpu``, ``memory``, ``gpu``, ``bandwidth``) and a raw number into text, such as ``4 cores``."""


def plain(resource: str, value: float) -> str:
    """The number followed by the resource's name."""
    return f"{value:g} {resource}"


@dataclass(frozen=True)
class TooFewNodes:
    """Tasks for which too few nodes have enough, by :func:`ces_core.model.too_few.too_few_nodes`.

    ``each``: resource -> what each of these tasks needs at least, in the problem's units. ``needed``: how many tasks
    these are; ``available``: how many of them fit on the nodes that they may use, one beside the other, and ``nodes``:
    on how many. ``apart``: no such node could hold two even if nothing else ran, so that each task needs its own.
    """

    each: Mapping[str, float]
    needed: int
    available: int
    nodes: int
    apart: bool

    def text(self, format_quantity: FormatQuantity, *, permanent: bool) -> str:
        """What is needed and what is there. ``permanent``: even if nothing else ran."""
        amounts = " and ".join(format_quantity(resource, amount) for resource, amount in self.each.items())
        free = "" if permanent else " free"
        if self.apart:
            wanted = (
                f"1 node with {amounts}{free} is"
                if self.needed == 1
                else f"{self.needed} nodes with {amounts}{free} are"
            )
            found = f"{self.nodes or 'none'} that it may use {'have' if self.nodes > 1 else 'has'} that"
            return f"{wanted} needed, and {found}"
        found = "nodes that they may use have" if self.available else "none has"
        times = {0: "", 1: " once"}.get(self.available, f" {self.available} times")
        return f"{self.needed} tasks need at least {amounts} each on one node, and {found} that{free}{times}"


@dataclass(frozen=True)
class Reason:
    """The constraint that cannot be met, and by how much.

    code:
        ``no-allowed-node``          the task may run nowhere
        ``cpu-per-node`` (memory, gpu)  no allowed node has enough for this task
        ``no-node-fits``             each resource is there, but on no single allowed node
        ``cpu-total`` (memory, gpu)  the tasks ask for more than is free on all nodes together
        ``unreachable``              no way between any two nodes that could hold the flow's ends
        ``bandwidth-per-flow``       no path between such nodes has room for the flow's minimum
        ``packing``                  each task fits alone, the tasks do not fit together
        ``bandwidth-together``       each minimum fits alone, the minimums do not fit together
        ``beyond-policy``            the solver's policy was made for smaller problems, and cannot be asked
        ``poor-bandwidth``           there is room, but the flows would be satisfied less than is worth starting with
        ``preempting``               running jobs of lower priority make room for it, and have not done so yet
        ``solver-failed``            the solver did not come to an end (``where`` says why)
        ``gpu-share``                no card has the share of it that a task asks for (``where`` says what is free)
        ``gpu-memory``               those with such a share have less memory than it asks for (likewise)
        ``gpu-model``                of the models that a task asks for no card, or too few whole ones (likewise)
        ``quota``                    the tenant (``where``) may not have so much more; permanent: not so much at all
        ``task-load``                a task would be loaded too much on every node where it fits
        ``task-time``                a task takes too long on every node where it fits
        ``placed-together``          a place for each task, but none together within limits, groups and held places
        ``deadline``                 a request class is too late even at its fastest (``where`` says what takes longest)
        ``reliability``              no plan is as reliable as is wanted
        ``goals-together``           each goal could be met alone, not all of them together
    permanent:
        True where it would not fit on the empty cluster either; False where others' use stands in the way.
    proven:
        False where the search for a place gave up rather than ended.
    nodes:
        Where nodes are the obstacle: that too few of them have enough, which is a proof, too. None: not that simple.
    """

    code: str
    permanent: bool = False
    proven: bool = True
    resource: str | None = None
    needed: float | None = None
    available: float | None = None
    where: str | None = None
    task: str | None = None
    flow: tuple[str, str] | None = None
    nodes: TooFewNodes | None = None

    @property
    def missing(self) -> float | None:
        """The shortfall, in the problem's units."""
        if self.needed is None or self.available is None:
            return None
        return self.needed - self.available

    def text(self, format_quantity: FormatQuantity = plain) -> str:
        """One sentence for people."""

        def quantity(value: float | None) -> str:
            return format_quantity(self.resource or "", 0.0 if value is None else value)

        flow = " -> ".join(self.flow) if self.flow else ""
        size = "largest" if self.permanent else "largest free"
        wide = "widest" if self.permanent else "widest free"
        if self.nodes is not None:
            text = self.nodes.text(format_quantity, permanent=self.permanent)
            largest = self.code.endswith("-per-node")
            return f"{text}; the {size} node{self._at()} has {quantity(self.available)}" if largest else text
        match self.code:
            case "no-allowed-node":
                text = f"task {self.task} is allowed on no node"
            case "no-node-fits":
                text = f"task {self.task} fits on no node: each resource is there, but on no single allowed node"
            case "unreachable":
                text = f"flow {flow} has no way between any nodes that could hold its ends"
            case "bandwidth-per-flow":
                text = (
                    f"flow {flow} needs at least {quantity(self.needed)}; "
                    f"the {wide} path{self._at()} has {quantity(self.available)}"
                )
            case "packing":
                text = f"the tasks do not fit on the nodes together; task {self.task} was left over most often"
            case "bandwidth-together":
                text = "the minimum bandwidths do not fit together"
                if self.flow and self.needed is not None and self.available is not None:
                    text += (
                        f"; flow {flow} needs at least {quantity(self.needed)} and found "
                        f"{quantity(self.available)} at best once the others had theirs"
                    )
            case "poor-bandwidth":
                found, wanted = (f"{(share or 0.0) * 100:.0f} %" for share in (self.available, self.needed))
                return f"waits for more bandwidth: now its flows would be satisfied to {found}, {wanted} are wanted"
            case "quota":
                left, needed = quantity(self.available), quantity(self.needed)
                return f"the quota of tenant {self.where} leaves {left}, the job needs {needed}"
            case "task-load":
                text = (
                    f"task {self.task} would be loaded to {self.needed or 0.0:.4g} even on {self.where}; "
                    f"{self.available or 0.0:g} is the most"
                )
            case "task-time":
                text = (
                    f"task {self.task} takes {self.needed or 0.0:.4g} ms even on {self.where}; "
                    f"{self.available or 0.0:.4g} ms is its limit"
                )
            case "placed-together":
                text = "tasks and flows do not fit together within limits on load and time, groups, and held places"
            case "deadline":
                text = f"{self.where}; {self.missing or 0.0:.4g} ms are missing"
            case "reliability":
                text = (
                    f"nodes and links work together with probability {self.available or 0.0:.6g} at best; "
                    f"{self.needed or 0.0:g} is wanted"
                )
            case "goals-together":
                text = "each of the goals can be met alone, but not all of them together"
            case "preempting":
                return "less urgent jobs are making room for it"
            case "solver-failed":
                return f"the solver failed on it: {self.where}"
            case "gpu-share" | "gpu-memory" | "gpu-model":
                return str(self.where)
            case "beyond-policy":
                return f"the solver's policy was made for {self.where} at most"
            case code if code.endswith("-per-node"):
                text = (
                    f"task {self.task} needs {quantity(self.needed)} on one node; "
                    f"the {size} node{self._at()} has {quantity(self.available)}"
                )
            case _:
                state = "all nodes together have" if self.permanent else "all nodes together have free"
                text = f"the tasks need {quantity(self.needed)}; {state} {quantity(self.available)}"
        if not self.proven:
            text += " (not proven: the search for a place was bounded)"
        return text

    def _at(self) -> str:
        return f" ({self.where})" if self.where else ""

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}

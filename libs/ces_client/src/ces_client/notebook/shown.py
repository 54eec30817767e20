"""The manager's answers, which show themselves in a notebook. Each is the message of its name, with the same fields and
the same JSON, and equal to it; only its look is added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, PrivateAttr

from ces_common.jobfile import JobFile
from ces_common.messages import api
from ces_common.messages.dashboard import Layout

T = TypeVar("T")
MOST_LISTED = 100


class Shown:
    """Comes before the message among the bases."""

    def _repr_html_(self) -> str | None:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        # As messages are compared, whose class must be the same; what is compared here is the message's own.
        alike = isinstance(other, BaseModel) and _message(type(self)) is _message(type(other))
        return alike and self.__dict__ == other.__dict__


def _message(kind: type) -> type:
    return next(base for base in kind.__mro__ if not issubclass(base, Shown))


class JobView(Shown, api.JobView):
    def _repr_html_(self) -> str:
        from ces_client.notebook.markup import html, shown
        from ces_client.view.formats import local_now
        from ces_client.view.job import job_facts, job_live

        now = local_now()
        return shown(html(job_live(self, now)), _folded("more of the job", html(job_facts(self, now))))


class JobFlowsView(Shown, api.JobFlowsView):
    def _repr_html_(self) -> str:
        from ces_client.notebook.markup import html, shown
        from ces_client.view.flows import job_flows

        return shown(html(job_flows(self, hops=False)))


class PlanView(Shown, api.PlanView):
    def _repr_html_(self) -> str:
        from ces_client.notebook.markup import html, shown
        from ces_client.view.formats import local_now, since
        from ces_client.view.plan import committed_plan, flow_table

        nodes: dict[str, str | None] = dict(self.assignments)
        how = committed_plan(self, since(self.committed_at, local_now()))
        return shown(html(flow_table(nodes, self.flows, measured=False)), html(how))


class PlanForecast(Shown, api.PlanForecast):
    _job: JobFile | None = PrivateAttr(default=None)

    def about(self, job: JobFile) -> Self:
        """This answer, to the question about that job, whose tasks and wishes its picture names."""
        self._job = job
        return self

    def _repr_html_(self) -> str | None:
        from ces_client.notebook.markup import html, shown
        from ces_client.view.formats import local_now
        from ces_client.view.plan import plan_answer

        return None if self._job is None else shown(html(plan_answer(self._job, self, local_now())))


class NodeView(Shown, api.NodeView):
    def _repr_html_(self) -> str:
        from ces_client.notebook.markup import html, shown
        from ces_client.view.formats import local_now
        from ces_client.view.lists import node_detail

        return shown(html(node_detail(self, [], local_now())))


class TopologyView(Shown, api.TopologyView):
    def _repr_html_(self) -> str:
        return _cluster(self, Layout())


@dataclass(frozen=True)
class ClusterMap:
    """A topology, and where operators put its nodes."""

    topology: api.TopologyView
    layout: Layout

    def _repr_html_(self) -> str:
        return _cluster(self.topology, self.layout)


class Listing(Generic[T], Iterator[T]):
    """Items fetched as they are needed, once. To show itself in a notebook it asks again, and uses none of its own
    up."""

    def __init__(self, ask: Callable[[], Iterator[T]], table: Callable[[Sequence[T]], str]) -> None:
        self._ask, self._table = ask, table
        self._items = ask()

    def __next__(self) -> T:
        return next(self._items)

    def _repr_html_(self) -> str:
        from ces_client.notebook.markup import shown

        items = list(islice(self._ask(), MOST_LISTED + 1))
        note = f"<p>the first {MOST_LISTED}; there are more</p>" if len(items) > MOST_LISTED else ""
        return shown(self._table(items[:MOST_LISTED]) if items else "<p>none</p>", note)


def _cluster(topology: api.TopologyView, layout: Layout) -> str:
    """The map, what it means, and the same in tables."""
    from rich.console import Group
    from rich.text import Text

    from ces_client.notebook.drawing import draw, wire_count
    from ces_client.notebook.markup import html, shown
    from ces_client.notebook.positions import can_place
    from ces_client.notebook.tables import links, nodes
    from ces_common.quantities import show_bandwidth

    picture = draw(topology, layout.positions)
    away = sum(node.state != "ready" for node in topology.nodes)
    down = sum(link.state == "down" for link in topology.links)
    head = f"{_counted(len(topology.nodes), 'node')}, {_counted(wire_count(topology.links), 'wire')}"
    trouble = [f", {_counted(away, 'node')} unreachable"] * (away > 0) + [f", {_counted(down, 'link')} down"] * (
        down > 0
    )
    media = ", ".join(f"{name} {show_bandwidth(bandwidth)}" for name, bandwidth in sorted(topology.media.items()))
    notes = [
        "Squares are switches. Blue, with a figure: the share of a wire that flows have reserved, in the direction in "
        "which it is larger."
    ]
    if picture.undrawn:
        notes.append(
            f"{picture.undrawn:,} of {len(topology.nodes):,} nodes are not drawn: those in trouble are, then those "
            "with most wires. “+N” counts a node's neighbours that are left out."
        )
    if not (layout.positions or can_place()):
        notes.append("On a circle: pip install 'ces-client[notebook]' has nodes lie by their wires.")
    return shown(
        html(Text.assemble((head, "bold"), *((text, "bold red") for text in trouble))),
        picture.svg,
        html(Text(f"shared media: {media}")) if media else "",
        html(Group(*(Text(note, style="dim") for note in notes))),
        _folded("nodes", nodes(topology.nodes)),
        _folded("links", links(topology.links)),
    )


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _folded(title: str, inner: str) -> str:
    return f"<details><summary>{title}</summary>{inner}</details>"

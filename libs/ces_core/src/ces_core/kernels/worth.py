"""What the room that a decision leaves behind is worth to the jobs that come later, in units of the composite.

A sum over nodes, of how good their free CPU is times how good their free memory is, and over links and media, of how
good their room is. All three rise with the room, so that taking more never leaves more; between their points they are
interpolated, and beyond the last flat. What counts is by how much a job lowers the sum: what it leaves alone is not
looked at.
"""

from __future__ import annotations

from ces_core.kernels.compact import Compact
from ces_core.kernels.fill import FillWork
from ces_core.kernels.jit import inner

HEAD = 5
"""``Compact.worth`` begins with: points of the nodes' table, points of the links' table, points per unit of CPU, of
memory and of bandwidth. Then come the tables."""
NODES, LINKS, PER_CPU, PER_MEMORY, PER_BANDWIDTH = range(HEAD)


@inner
def _looked_up(view: Compact, first: int, points: int, at: float) -> float:
    """The table of ``points`` that begins at ``first``, between two of its points."""
    at = min(max(at, 0.0), points - 1.0)
    i = min(int(at), points - 2)
    value: float = view.worth[first + i] + (view.worth[first + i + 1] - view.worth[first + i]) * (at - i)
    return value


@inner
def node_worth(view: Compact, cpu: float, memory: float) -> float:
    """Of a node with so much free."""
    points = int(view.worth[NODES])
    good = _looked_up(view, HEAD, points, cpu * view.worth[PER_CPU])
    return good * _looked_up(view, HEAD, points, memory * view.worth[PER_MEMORY])


@inner
def link_worth(view: Compact, room: float) -> float:
    """Of a link or medium with so much room."""
    first = HEAD + int(view.worth[NODES])
    return _looked_up(view, first, int(view.worth[LINKS]), room * view.worth[PER_BANDWIDTH])


@inner
def links_change(view: Compact, work: FillWork) -> float:
    """By how much the latest fill changes what links and media are worth; never above zero."""
    change = 0.0
    for i in range(work.counts[1]):
        r = work.touched[i]
        change += link_worth(view, work.left[r]) - link_worth(view, view.room[r])
    return change

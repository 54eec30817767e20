"""Value of residual capacity to later jobs, in units of the composite.

It sums, over nodes, the product of a CPU term and a memory term, and, over links and media, a bandwidth term. All terms
rise with residual capacity, so using more never raises the value; they are interpolated between table points and
constant beyond the last. Only the change caused by a job counts, so untouched nodes and links are skipped.

Beside that or instead there may be a table of what a node's GPU cards are worth by the number of the job's steps on it
(:mod:`ces_core.gpus.left_over`).
"""

from __future__ import annotations

from ces_core.compiled.jit import inner
from ces_core.placement.fill import FillWork
from ces_core.placement.view import ProblemView

HEAD = 5
"""``ProblemView.worth`` begins with: length of the node table, length of the link table, table points per unit of CPU,
of memory and of bandwidth. The tables follow."""
NODES, LINKS, PER_CPU, PER_MEMORY, PER_BANDWIDTH = range(HEAD)


@inner
def _looked_up(view: ProblemView, first: int, points: int, at: float) -> float:
    """Interpolates at ``at`` in the table of ``points`` entries that begins at ``first``."""
    at = min(max(at, 0.0), points - 1.0)
    i = min(int(at), points - 2)
    value: float = view.worth[first + i] + (view.worth[first + i + 1] - view.worth[first + i]) * (at - i)
    return value


@inner
def node_worth(view: ProblemView, cpu: float, memory: float) -> float:
    """Value of a node with this much free CPU and memory."""
    points = int(view.worth[NODES])
    good = _looked_up(view, HEAD, points, cpu * view.worth[PER_CPU])
    return good * _looked_up(view, HEAD, points, memory * view.worth[PER_MEMORY])


@inner
def cards_worth(view: ProblemView, node: int, gpu: float) -> float:
    """Change in the value of a node's cards with this much GPU free."""
    step = int((view.free[2, node] - gpu) * view.per_card + 0.5)
    change: float = view.cards[node, min(max(step, 0), view.cards.shape[1] - 1)]
    return change


@inner
def left_worth(view: ProblemView, node: int, cpu: float, memory: float, gpu: float) -> float:
    """Value of a node with this much free of each."""
    value = node_worth(view, cpu, memory) if len(view.worth) > 0 else 0.0
    return value + (cards_worth(view, node, gpu) if len(view.cards) > 0 else 0.0)


@inner
def is_valued(view: ProblemView) -> bool:
    """Whether what nodes have left counts."""
    return len(view.worth) > 0 or len(view.cards) > 0


@inner
def link_worth(view: ProblemView, residual: float) -> float:
    """Value of a link or medium with this residual capacity."""
    first = HEAD + int(view.worth[NODES])
    return _looked_up(view, first, int(view.worth[LINKS]), residual * view.worth[PER_BANDWIDTH])


@inner
def links_change(view: ProblemView, work: FillWork) -> float:
    """Change in the value of links and media by the latest fill; never positive."""
    change = 0.0
    for i in range(work.counts[1]):
        r = work.touched[i]
        change += link_worth(view, work.left[r]) - link_worth(view, view.residual[r])
    return change

"""What would be changed of a running job, as lines and tables; and what the service can carry out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ces_common.messages.adjustments import AdjustmentProposal, ProposedChange, ProposedMove
from ces_common.quantities import show_bandwidth

Rate = Callable[[float], str]
OWN = (
    "the service sets rates and paths of running flows for deadlines only by itself, where the job's file says "
    "`adjust`; else it reroutes them for bandwidth and around broken links"
)
ANY_MOVES = "`--moves` has no say in that, since moves are proposed only where they are worth more than these"


def rate_text(rate: float) -> str:
    """Of a flow of a cluster's job."""
    return show_bandwidth(int(rate))


def lines(
    name: str, proposal: AdjustmentProposal, cpu: Mapping[str, float], rate: Rate = rate_text
) -> Iterator[RenderableType]:
    """``name``: the job's. ``cpu``: task -> what it has now, of those whose amount would change."""
    now = "" if proposal.objective is None else f", objective {proposal.objective:.4f}"
    yield Text(f"{name}: {'a limit is broken' if proposal.broken else 'keeps its limits'}{now}")
    for broken in proposal.broken:
        yield Text(f"  {broken.message}")
    found = proposal.adjustment
    if found is None:
        yield Text("  nothing would change")
    else:
        yield from _changes(found, cpu, rate)
        gain = "" if proposal.gain is None else f", {proposal.gain:.4f} more than now"
        cost = f", of which its moves take {found.cost:.4f}" if found.moves else ""
        yield Text(f"  by {found.step}: objective {found.objective:.4f}{cost}{gain}")
    yield Text(f"  {proposal.certificate.text}")
    if proposal.remark is not None:
        yield Text(f"  {proposal.remark}")


def _changes(found: ProposedChange, cpu: Mapping[str, float], rate: Rate) -> Iterator[RenderableType]:
    if found.moves:
        moves = Table("move", "from", "to", "stands still, s", "requests meanwhile")
        for move in found.moves:
            moves.add_row(move.task, move.src, move.dst, f"{move.seconds:.4g}", f"{move.requests:.4g}")
        yield moves
    if found.cpu:
        amounts = Table("task", "CPU now", "CPU then")
        for task, amount in cpu.items():
            if task in found.cpu:
                amounts.add_row(task, f"{amount:g}", f"{found.cpu[task]:g}")
        yield amounts
    if found.flows:
        flows = Table("flow", "rate then", "path then")
        for flow in found.flows:
            flows.add_row(f"{flow.src} -> {flow.dst}", rate(flow.bandwidth), " ".join(flow.path))
        yield flows


def in_place(proposal: AdjustmentProposal) -> str | None:
    """What becomes of a proposal without moves, of a cluster's job; None for any other."""
    found = proposal.adjustment
    return f"{OWN}; {ANY_MOVES}" if found is not None and not found.moves else None


def carried_out(proposal: AdjustmentProposal) -> tuple[ProposedMove | None, str]:
    """The one move that the service can make of it, and what it does not do of the rest."""
    found = proposal.adjustment
    if found is None:
        return None, "nothing is carried out, since nothing would change"
    stays = in_place(proposal)
    if stays is not None:
        return None, f"nothing is carried out: {stays}"
    if proposal.remark is not None:
        return None, f"nothing is carried out: {proposal.remark}"
    if len(found.moves) > 1:
        return None, (
            f"nothing is carried out: these {len(found.moves)} moves are worth it together, and the service makes one "
            "at a time; `--moves 1` tells whether one of them is worth it alone"
        )
    return found.moves[0], "paths and rates of its flows are sought anew for the move; those of other flows stay"

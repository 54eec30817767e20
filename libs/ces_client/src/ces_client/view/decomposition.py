"""Ways of dividing a graph side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_common.quantities import show_bandwidth, show_cpu, show_memory


@dataclass(frozen=True)
class Row:
    """One way of dividing. ``cut``: bit/s between parts; ``spread``: half its 95 % interval; ``share``: of all traffic.
    ``largest``: millicores and bytes of the part that asks for most of each. ``placed``: the composite of the place
    that the cluster's scheduler found. ``near``: traffic between the part near the user and the others, bit/s, its gap,
    and bytes of state that follow a move. ``said``: what else is to be known."""

    name: str
    parts: int
    chosen: bool = False
    cut: float | None = None
    spread: float = 0.0
    share: float | None = None
    gap: float | None = None
    largest: tuple[float, float] | None = None
    placed: float | None = None
    said: str = ""
    near: tuple[float, float, float] | None = None

    def document(self) -> dict[str, Any]:
        largest = {} if self.largest is None else {"largest_cpu": self.largest[0], "largest_memory": self.largest[1]}
        near = {} if self.near is None else dict(zip(("near_cut", "near_gap", "near_state"), self.near, strict=True))
        return (
            {
                "name": self.name,
                "parts": self.parts,
                "chosen": self.chosen,
                "cut": self.cut,
                "spread": self.spread,
                "share": self.share,
                "gap": self.gap,
                "composite": self.placed,
                "said": self.said,
            }
            | largest
            | near
        )


def levels_table(levels: Sequence[Row], others: Sequence[Row]) -> RenderableType:
    """The levels of one method, the chosen one marked, and below what other ways cut."""
    placed = any(row.placed is not None for row in levels)
    head = ("", "parts", "traffic between parts", "of all", "largest part", "gap", *(["composite"] if placed else []))
    table = Table("", *head[1:], "")
    for block in (levels, others):
        for row in block:
            cells = [
                f"{'* ' if row.chosen else '  '}{row.name}",
                str(row.parts),
                _cut(row),
                "" if row.share is None else f"{row.share:.1%}",
                "" if row.largest is None else f"{show_cpu(row.largest[0])}, {show_memory(row.largest[1])}",
                "" if row.gap is None else _gap(row.gap),
                *([f"{row.placed:.4f}" if row.placed is not None else ""] if placed else []),
                "; ".join(filter(None, [_near(row), row.said])),
            ]
            table.add_row(*(Text(cell) for cell in cells))
        table.add_section()
    return table


def parts_table(parts: Sequence[tuple[str, float, float, int, str, Sequence[str]]]) -> RenderableType:
    """Each part: its task, millicores, bytes, cards, architecture, vertices."""
    gpus = any(part[3] for part in parts)
    table = Table("task", "cpu", "memory", *(["gpu"] if gpus else []), "arch", "vertices")
    for task, cpu, memory, gpu, arch, vertices in parts:
        named = ", ".join(vertices[:6]) + (f" and {len(vertices) - 6} more" if len(vertices) > 6 else "")
        cells = [task, show_cpu(cpu), show_memory(memory), *([str(gpu)] if gpus else []), arch, named]
        table.add_row(*(Text(cell) for cell in cells))
    return Group(Text("parts", style="bold"), table)


def _gap(gap: float) -> str:
    return "proven" if gap == 0 else f"{gap:.1%}"


def _near(row: Row) -> str:
    if row.near is None:
        return ""
    cut, gap, state = row.near
    least = "proven" if gap == 0 else f"gap {gap:.1%}"
    return f"near: {show_bandwidth(cut)} to the rest ({least}), {show_memory(state)} of state"


def _cut(row: Row) -> str:
    if row.cut is None:
        return ""
    spread = f" ± {show_bandwidth(row.spread)}" if row.spread else ""
    return f"{show_bandwidth(row.cut)}{spread}"

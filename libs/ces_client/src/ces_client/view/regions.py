"""Regions as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH, cpu_share, memory_share, span, state_text
from ces_client.view.tables import plain_table
from ces_common.messages.regions import RegionView


def region_table(regions: Sequence[RegionView]) -> Table:
    """Sums are of what takes new work: what is used of what there is."""
    table = plain_table(
        "REGION", "STATE", "AGE", "NODES", "CPU", "MEMORY", "GPU", "QUEUE", "ACCEPTS", optional=("MEMORY", "GPU")
    )
    for region in regions:
        sums, state = region.summary, state_text(region.state)
        if region.remark:
            state.append(f": {region.remark}", style="yellow")
        if sums is None:
            table.add_row(region.name, state, *[DASH] * 7)
            continue
        free, total = sums.free, sums.total
        wait = "" if not sums.wait_s else f", {span(sums.wait_s)}"
        table.add_row(
            region.name,
            state,
            DASH if region.age_s is None else span(region.age_s),
            str(sums.nodes),
            cpu_share(total.cpu - free.cpu, total.cpu),
            memory_share(total.memory - free.memory, total.memory),
            f"{total.gpu - free.gpu}/{total.gpu}" if total.gpu else DASH,
            f"{sums.queued}{wait}",
            Text(DASH if region.state == "here" else ", ".join(region.accepts) or "nobody"),
        )
    return table

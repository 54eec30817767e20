"""A job's flows over time as a table: asked, given and carried, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import fmean

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH, path_text, rate, rate_range, state_text
from ces_client.view.plan import unenforced_note
from ces_client.view.tables import plain_table
from ces_common.messages.api import FlowRates, FlowSample, JobFlowsView
from ces_common.messages.dashboard import HeldFlow
from ces_common.shares import RETURN
from ces_common.states import JobState

BARS = "▁▂▃▄▅▆▇█"
LATE = timedelta(seconds=10)  # an older report does not describe the present
COLUMNS = ("FLOW", "MODE", "MIN", "MAX", "RATE", "PATH", "NOW", "MEAN", "LAST MINUTE")


def job_flows(view: JobFlowsView, *, hops: bool) -> RenderableType:
    """``hops``: with a line for each link of a path that has more than one."""
    head = Text(f"{view.name} {view.id}  ").append_text(state_text(view.state))
    if not view.flows:
        return Group(head, Text("the job has no flows"))
    parts: list[RenderableType] = [head, Text(), _table(view, hops)]
    short = [flow for flow in view.flows if flow.shortfall is not None]
    if short:
        parts.append(Text())
    for flow in short:
        assert flow.shortfall is not None
        parts.append(Text(f"warning: {flow.src} → {flow.dst} {flow.shortfall.text}", style="yellow"))
    notes = [note for note in (_silence_note(view), unenforced_note(view.flows)) if note is not None]
    return Group(*parts, *([Text(), *notes] if notes else []))


def _silence_note(view: JobFlowsView) -> Text | None:
    """Why a flow may carry nothing though its tasks talk; None where all flows of a running job carry something."""
    silent = [
        f"{flow.src} → {flow.dst}"
        for flow in view.flows
        if flow.hops and flow.hops[0].samples and not any(sample.measured for sample in flow.hops[0].samples)
    ]
    if not silent or view.state != JobState.RUNNING:
        return None
    return Text(
        f"{', '.join(silent)} carried nothing: only what the sender sends is counted. Answers are not, and share "
        f"{RETURN:.1%} of the flow's rate; data that goes back needs a flow of its own",
        style="dim",
    )


def held_table(flows: Sequence[HeldFlow]) -> Table:
    """Flows of all jobs that reserve bandwidth: asked, given and carried."""
    numbers = ("ASKED", "RATE", "MEASURED")
    table = plain_table("JOB", "FLOW", "PATH", *numbers, "FALLS SHORT", right=numbers, wrapped=("PATH", "FALLS SHORT"))
    for flow in flows:
        given = Text(rate(flow.rate))
        if not flow.enforced:
            given.append("*", style="yellow")
        measured = Text(rate(flow.measured), style="yellow" if flow.shortfall else "")
        why = Text(flow.shortfall.text if flow.shortfall else "", style="yellow")
        asked = rate_range(flow.min, flow.max)
        table.add_row(flow.name, f"{flow.src} → {flow.dst}", path_text(flow.path), asked, given, measured, why)
    return table


def sparkline(rates: Sequence[float], top: float) -> str:
    """A bar for each rate; the highest bar stands for ``top`` and above."""
    if top <= 0:
        return BARS[0] * len(rates)
    return "".join(BARS[min(int(min(value, top) / top * len(BARS)), len(BARS) - 1)] for value in rates)


def _table(view: JobFlowsView, hops: bool) -> Table:
    numbers = ("MIN", "MAX", "RATE", "NOW", "MEAN")
    optional = ("MODE", "LAST MINUTE", "MIN", "MAX", "MEAN")
    table = plain_table(*COLUMNS, right=numbers, wrapped=("PATH",), optional=optional)
    for flow in view.flows:
        given = Text(rate(flow.rate))
        if flow.rate is not None and not flow.enforced:
            given.append("*", style="yellow")
        asked = (f"{flow.src} → {flow.dst}", flow.mode, rate(flow.min), rate(flow.max), given)
        samples = flow.hops[0].samples if flow.hops else []
        table.add_row(*asked, path_text(flow.path), *_carried(samples, flow, view.at))
        if hops and len(flow.hops) > 1:
            for hop in flow.hops:
                table.add_row(*[""] * 5, f"  {hop.src} › {hop.dst}", *_carried(hop.samples, flow, view.at))
    return table


def _carried(samples: Sequence[FlowSample], flow: FlowRates, at: datetime) -> tuple[str | Text, str, str]:
    """Now, mean, and over time; bars of all links of a flow have one scale, and what falls short a colour."""
    if len(flow.path) == 1:
        return "no link", DASH, ""
    if not samples:
        return DASH, DASH, ""
    rates = [sample.measured for sample in samples]
    most = max(sample.measured for hop in flow.hops for sample in hop.samples)
    now = rate(rates[-1]) if at - samples[-1].at <= LATE else DASH
    told = Text(now, style="yellow" if flow.shortfall is not None else "")
    return told, rate(fmean(rates)), sparkline(rates, max(most, flow.rate or 0))

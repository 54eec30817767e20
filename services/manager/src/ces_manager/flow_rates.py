"""A job's flows as they were in the last minutes, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean

from ces_common.db.uow import ReadTx
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowShortfall, FlowView, JobFlowsView
from ces_common.quantities import show_bandwidth
from ces_manager.flow_history import FlowHistory
from ces_manager.measurements import Measurements
from ces_manager.shortfall import SAMPLES, short_hop
from ces_manager.views import job_view

WINDOW = timedelta(minutes=1)


def job_flows_view(
    tx: ReadTx, job: str, measurements: Measurements, now: datetime, since: datetime | None = None
) -> JobFlowsView:
    """``since``: from when on samples are wanted, the last minute if left out. Raises NotFound."""
    view = job_view(tx, job, measurements)
    start = view.started_at or now  # before it, another flow may have had the same number
    wanted = max(start, now - WINDOW if since is None else since)
    recent = max(start, now - WINDOW)
    flows = [_rates(flow, measurements.history, wanted, recent) for flow in view.flows]
    return JobFlowsView(id=view.id, name=view.name, state=view.state, at=now, flows=flows)


def _rates(flow: FlowView, history: FlowHistory, since: datetime, recent: datetime) -> FlowRates:
    rates = FlowRates(**flow.model_dump())
    if flow.number is None or len(flow.path) < 2:
        return rates
    hops = [
        FlowHop(src=src, dst=dst, samples=history.samples(src, flow.number, since)) for src, dst in pairwise(flow.path)
    ]
    shortfall = None
    if flow.enforced:  # elsewhere nothing is promised
        lately = [history.samples(hop.src, flow.number, recent)[-SAMPLES:] for hop in hops]
        short = short_hop(lately)
        shortfall = None if short is None else _shortfall(hops[short], lately[short : short + 2])
    return rates.model_copy(update={"hops": hops, "shortfall": shortfall})


def _shortfall(hop: FlowHop, around: Sequence[Sequence[FlowSample]]) -> FlowShortfall:
    """``around``: reports of the link's source, and of the node behind it if that sends the flow on."""
    carried = min(fmean(sample.rate for sample in samples) for samples in around if samples)
    given = around[0][-1].given
    text = (
        f"has more to send, and the link {hop.src} -> {hop.dst} lets {show_bandwidth(carried)} through of the "
        f"{show_bandwidth(given)} that it was given"
    )
    return FlowShortfall(src=hop.src, dst=hop.dst, rate=carried, text=text)

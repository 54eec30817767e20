"""The rates of a job's flows in the last minutes, link by link, and which link does not carry what it should: a flow
may carry less than it was given although its program has more to send."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import fmean

from ces_common.db.uow import ReadTx
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowShortfall, FlowView, JobFlowsView
from ces_common.quantities import show_bandwidth
from ces_manager.jobs.job_views import job_view
from ces_manager.measurements import FlowHistory, Measurements

WINDOW = timedelta(minutes=1)
SAMPLES = 5  # reports in a row that must agree, two seconds apart as agents send them
SHORT = 0.9  # of what was given; less is clearly under it


def job_flows_view(
    tx: ReadTx, job: str, measurements: Measurements, now: datetime, since: datetime | None = None
) -> JobFlowsView:
    """``since``: samples from then on; the last minute if left out. Raises NotFound."""
    view = job_view(tx, job, measurements)
    start = view.started_at or now  # before it, another flow may have had the same number
    start_at = max(start, now - WINDOW if since is None else since)
    recent = max(start, now - WINDOW)
    flows = [_rates(flow, measurements.history, start_at, recent) for flow in view.flows]
    return JobFlowsView(id=view.id, name=view.name, state=view.state, at=now, flows=flows)


def _rates(flow: FlowView, history: FlowHistory, since: datetime, recent: datetime) -> FlowRates:
    rates = FlowRates(**flow.model_dump())
    if flow.number is None or len(flow.path) < 2:
        return rates
    hops = [
        FlowHop(src=src, dst=dst, samples=history.samples(src, flow.number, since)) for src, dst in pairwise(flow.path)
    ]
    shortfall = shortfall_of(history, flow.number, flow.path, recent) if flow.enforced else None
    return rates.model_copy(update={"hops": hops, "shortfall": shortfall})


def shortfall_of(history: FlowHistory, number: int, path: Sequence[str], since: datetime) -> FlowShortfall | None:
    """Which link of a flow's path does not carry what it was given, by reports from ``since`` on; None where there is
    no such. To be asked of enforced flows: elsewhere nothing is promised."""
    hops = list(pairwise(path))
    lately = [history.samples(src, number, since)[-SAMPLES:] for src, _ in hops]
    short = short_hop(lately)
    if short is None or not lately[short]:  # a node on the way that reports nothing leaves it open what it was given
        return None
    (src, dst), around = hops[short], lately[short : short + 2]  # the node behind it sends the flow on
    carried = min(fmean(sample.measured for sample in samples) for samples in around if samples)
    text = (
        f"has more to send, and the link {src} › {dst} lets {show_bandwidth(carried)} through of the "
        f"{show_bandwidth(around[0][-1].rate)} that it was given"
    )
    return FlowShortfall(src=src, dst=dst, measured=carried, text=text)


def short_hop(hops: Sequence[Sequence[FlowSample]]) -> int | None:
    """Index of the link of a flow's path that does not carry what the flow was given; None where there is no such.

    ``hops``: for each link of the path in order, what the node that sends over it reported, the oldest first. A flow
    has more to send where something waited in its class at every look of the last reports. From there on, the first
    node that sends clearly less than was given tells the link: its own if the flow waits there, since then the link
    does not take it; else the one before, since what was sent over that one did not arrive. A sender that pauses, or
    sends little, leaves nothing waiting and is never short.
    """
    recent = [hop[-SAMPLES:] for hop in hops]
    waits = [len(hop) == SAMPLES and all(sample.waited >= 1 for sample in hop) for hop in recent]
    under = [len(hop) == SAMPLES and all(sample.measured < SHORT * sample.rate for sample in hop) for hop in recent]
    if not any(waits):
        return None
    short = next((i for i in range(waits.index(True), len(hops)) if under[i]), None)
    return short if short is None or waits[short] else short - 1

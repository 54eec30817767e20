"""A job's flows over time."""

from __future__ import annotations

from datetime import timedelta

from client_views import wide
from hypothesis import given
from hypothesis import strategies as st

from ces_client.view.flows import BARS, job_flows, sparkline
from ces_common.messages.api import FlowHop, FlowRates, FlowSample, FlowShortfall, JobFlowsView


def carrying(samples, *rates, age_s=0):
    """A view of one flow over two links, of which the second carries half."""
    at = samples.submitted

    def hop(src, dst, share):
        times = [at - timedelta(seconds=age_s + 2 * i) for i in reversed(range(len(rates)))]
        said = [FlowSample(at=time, measured=rate * share) for time, rate in zip(times, rates, strict=True)]
        return FlowHop(src=src, dst=dst, samples=said)

    flow = FlowRates(
        **samples.job("running").flows[0].model_dump(),
        hops=[hop("n0", "s0", 1), hop("s0", "n1", 0.5)],
        shortfall=FlowShortfall(src="n0", dst="s0", measured=1e7, text="has more to send, and so on"),
    )
    return JobFlowsView(id=samples.id, name="digits", state="running", at=at, flows=[flow])


def test_flows_show_what_they_carry_over_time_and_where_it_is_lost(samples):
    view = carrying(samples, 0.0, 20e6, 40e6)
    (row,) = [line for line in wide(job_flows(view, hops=False)) if line.startswith("worker-0")]
    assert row.split("  ")[-3:] == ["40 Mbit/s", "20 Mbit/s", "▁▅█"]
    assert "n0 › s0 › n1" in row
    shown = wide(job_flows(view, hops=True))
    assert [line.split()[-5:] for line in shown[4:6]] == [
        ["40", "Mbit/s", "20", "Mbit/s", "▁▅█"],
        ["20", "Mbit/s", "10", "Mbit/s", "▁▃▅"],
    ]
    assert shown[-1] == "warning: worker-0 → worker-1 has more to send, and so on"


def test_what_a_flow_carried_a_while_ago_is_not_now(samples):
    (row,) = [line for line in wide(job_flows(carrying(samples, 4e7, age_s=30), hops=False)) if "worker-0" in line[:9]]
    assert row.split("  ")[-3:] == ["–", "40 Mbit/s", "█"]


@given(st.lists(st.floats(0, 1e12)), st.floats(0, 1e12))
def test_a_sparkline_has_a_bar_for_each_rate_and_higher_ones_for_higher_rates(rates, top):
    bars = [BARS.index(bar) for bar in sparkline(sorted(rates), top)]
    assert len(bars) == len(rates)
    assert bars == sorted(bars)


def test_a_flow_that_carries_nothing_says_what_is_not_counted(samples):
    note = "worker-0 → worker-1 carried nothing: only what the sender sends is counted."
    assert any(note in line for line in wide(job_flows(carrying(samples, 0.0, 0.0), hops=False)))
    for silent in (carrying(samples, 0.0, 1e6), carrying(samples, 0.0).model_copy(update={"state": "succeeded"})):
        assert "carried nothing" not in "\n".join(wide(job_flows(silent, hops=False)))

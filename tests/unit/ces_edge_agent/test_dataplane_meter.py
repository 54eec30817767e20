from __future__ import annotations

import pytest

from ces_common.messages.wanted import Endpoint, FlowClass, LinkDevice, NetworkWanted
from ces_edge_agent.dataplane.meter import Counter, LinkCounters, Meters

LINK = LinkDevice(peer="n2", device="to-n2", kind="veth", bandwidth=10**8, unreserved=10**6, gateway="10.2.0.1")
WANTED = NetworkWanted(
    node="n1",
    generation=1,
    links=[LINK],
    endpoints=[Endpoint(allocation="one", job="a.1", address="10.1.0.2", hostname="w")],
    classes=[
        FlowClass(job="a.1", number=3, kind="data", via="n2", src="10.1.0.2", dst="10.2.0.2", rate=10**6),
        FlowClass(job="a.1", number=4, kind="return", via="n2", src="10.1.0.2", dst="10.2.0.2", rate=10**6),
        FlowClass(job="b.1", number=5, kind="data", via="n2", src="10.9.0.2", dst="10.2.0.2", rate=10**6),
    ],
)


def test_rate_is_since_the_last_report_and_peak_is_the_busiest_second() -> None:
    counter = Counter()
    for step, total in enumerate([0, 0, 0, 1000, 2000, 2000, 2000]):  # every half second
        counter.see(step * 0.5, total)
    rate, peak = counter.report()
    assert rate == pytest.approx(2000 * 8 / 3)
    assert peak == pytest.approx(2000 * 8)
    for step in range(7, 10):
        counter.see(step * 0.5, 2000)
    assert counter.report() == (0.0, 0.0)


def test_a_burst_before_the_report_does_not_count_again() -> None:
    counter = Counter()
    for step, total in enumerate([0, 1000, 2000]):
        counter.see(step * 0.5, total)
    counter.report()
    counter.see(1.5, 2000)
    counter.see(2.0, 2000)
    counter.see(2.5, 2000)
    assert counter.report()[0] == 0.0


def test_a_counter_that_starts_again_keeps_its_total() -> None:
    counter = Counter()
    for now, value in ((0.0, 500), (1.0, 900), (2.0, 100)):
        counter.see(now, value)
    assert counter.total == 1000


def test_nothing_seen_is_nothing_reported() -> None:
    assert Counter().report() == (0.0, 0.0)


def test_a_node_measures_its_links_and_the_flows_that_begin_there() -> None:
    meters = Meters()
    meters.watch(WANTED)
    assert (meters.links, meters.flow_devices) == ({"to-n2"}, {"to-n2"})
    for now in (0.0, 1.0):
        meters.see_link(now, "to-n2", LinkCounters(sent=int(now * 1000), received=int(now * 500), drops=7))
        meters.see_classes(now, "to-n2", {6: int(now * 250), 9: 1, 10: 1})
    ((link,), (flow,)) = meters.report()
    assert (link.peer, link.sent, link.received, link.drops) == ("n2", 8000, 4000, 7)
    assert (flow.number, flow.rate, flow.peak, flow.total) == (3, 2000, 2000, 250)


def test_watching_the_same_again_forgets_nothing() -> None:
    meters = Meters()
    meters.watch(WANTED)
    meters.see_classes(0.0, "to-n2", {6: 100})
    meters.watch(WANTED.model_copy(update={"generation": 2}))
    meters.see_classes(1.0, "to-n2", {6: 300})
    assert meters.report()[1][0].total == 300
    meters.watch(WANTED.model_copy(update={"classes": []}))
    assert meters.report()[1] == []

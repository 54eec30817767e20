from __future__ import annotations

import pytest

from ces_common.messages.desired import DesiredNetwork, Endpoint, FlowClass, LinkDevice
from ces_edge_agent.dataplane.meters import ClassCounters, Counter, LinkCounters, Meters

LINK = LinkDevice(peer="n2", device="to-n2", kind="veth", bandwidth=10**8, best_effort=10**6, gateway="10.2.0.1")
DESIRED = DesiredNetwork(
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
        counter.sample(step * 0.5, total)
    rate, peak = counter.report()
    assert rate == pytest.approx(2000 * 8 / 3)
    assert peak == pytest.approx(2000 * 8)
    for step in range(7, 10):
        counter.sample(step * 0.5, 2000)
    assert counter.report() == (0.0, 0.0)


def test_a_burst_before_the_report_does_not_count_again() -> None:
    counter = Counter()
    for step, total in enumerate([0, 1000, 2000]):
        counter.sample(step * 0.5, total)
    counter.report()
    counter.sample(1.5, 2000)
    counter.sample(2.0, 2000)
    counter.sample(2.5, 2000)
    assert counter.report()[0] == 0.0


def test_a_counter_that_starts_again_keeps_its_total() -> None:
    counter = Counter()
    for now, value in ((0.0, 500), (1.0, 900), (2.0, 100)):
        counter.sample(now, value)
    assert counter.total == 1000


def test_nothing_seen_is_nothing_reported() -> None:
    assert Counter().report() == (0.0, 0.0)


def test_a_node_measures_its_links_and_the_flows_that_it_sends_over_them() -> None:
    meters = Meters()
    meters.watch(DESIRED)
    assert (meters.links, meters.flow_devices, meters.source_devices) == ({"to-n2"}, {"to-n2"}, {"to-n2"})
    for now in (0.0, 1.0):
        meters.sample_link(now, "to-n2", LinkCounters(int(now * 1000), int(now * 500), drops=7, errors=2))
        other = ClassCounters(1)
        meters.sample_classes(now, "to-n2", {6: ClassCounters(int(now * 250), drops=3), 9: other, 10: other})
    ((link,), (flow, passing)) = meters.report()
    assert (link.peer, link.sent, link.received, link.drops, link.errors) == ("n2", 8000, 4000, 7, 2)
    assert (flow.number, flow.measured, flow.peak, flow.total, flow.drops) == (3, 2000, 2000, 250, 3)
    assert (passing.number, passing.total) == (5, 1)


def test_what_only_passes_is_looked_at_for_reports_alone() -> None:
    meters = Meters()
    meters.watch(DESIRED.model_copy(update={"endpoints": []}))
    assert (meters.flow_devices, meters.source_devices) == ({"to-n2"}, set())


def test_a_flow_waits_while_bytes_are_queued_or_new_ones_were_dropped() -> None:
    meters = Meters()
    meters.watch(DESIRED)
    for now, counters in enumerate([(0, 9, 0), (1, 9, 0), (2, 9, 500), (3, 10, 0)]):
        meters.sample_classes(float(now), "to-n2", {6: ClassCounters(*counters)})
    assert meters.report()[1][0].waited == 0.5
    rate = [flow.model_copy(update={"rate": 5 * 10**5}) for flow in DESIRED.classes]
    meters.watch(DESIRED.model_copy(update={"classes": rate}))
    flow = meters.report()[1][0]
    assert (flow.waited, flow.rate, flow.total) == (0.0, 5 * 10**5, 3)


def test_watching_the_same_again_forgets_nothing() -> None:
    meters = Meters()
    meters.watch(DESIRED)
    meters.sample_classes(0.0, "to-n2", {6: ClassCounters(100)})
    meters.watch(DESIRED.model_copy(update={"generation": 2}))
    meters.sample_classes(1.0, "to-n2", {6: ClassCounters(300)})
    assert meters.report()[1][0].total == 300
    meters.watch(DESIRED.model_copy(update={"classes": []}))
    assert meters.report()[1] == []


def test_a_flow_that_takes_another_way_goes_on_counting() -> None:
    other = LINK.model_copy(update={"peer": "n3", "device": "to-n3"})
    both = DESIRED.model_copy(update={"links": [LINK, other]})
    meters = Meters()
    meters.watch(both)
    meters.sample_classes(0.0, "to-n2", {6: ClassCounters(300)})
    away = [flow.model_copy(update={"via": "n3"}) if flow.number == 3 else flow for flow in DESIRED.classes]
    meters.watch(both.model_copy(update={"classes": away}))
    meters.sample_classes(1.0, "to-n3", {6: ClassCounters(50)})
    flow = next(each for each in meters.report()[1] if each.number == 3)
    assert (flow.job, flow.total) == ("a.1", 350)
    used_again = [flow.model_copy(update={"job": "c.1"}) if flow.number == 3 else flow for flow in away]
    meters.watch(both.model_copy(update={"classes": used_again}))
    assert next(each for each in meters.report()[1] if each.number == 3).total == 0


def test_a_job_whose_change_failed_is_measured_as_it_was() -> None:
    other = LINK.model_copy(update={"peer": "n3", "device": "to-n3"})
    both = DESIRED.model_copy(update={"links": [LINK, other]})
    meters = Meters()
    meters.watch(both)
    moved = [flow.model_copy(update={"via": "n3", "rate": 7}) for flow in both.classes]
    meters.watch(both.model_copy(update={"classes": moved}), unchanged={"a.1", "c.1"})
    assert meters.flow_devices == {"to-n2", "to-n3"}
    meters.sample_classes(0.0, "to-n2", {6: ClassCounters(300)})
    meters.sample_classes(0.0, "to-n3", {10: ClassCounters(200)})
    found = {flow.job: (flow.rate, flow.total) for flow in meters.report()[1]}
    assert found == {"a.1": (10**6, 300), "b.1": (7, 200)}

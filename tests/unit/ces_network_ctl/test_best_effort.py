"""A network without reservations: the same links, routes and flows, and no flow before another."""

from cluster_state import MBIT, job, node, view_of, wire

from ces_network_ctl.best_effort import best_effort_only
from ces_network_ctl.desired_network import Planner

NODES = [node("a", 1), node("s", 2, cpu=0, memory=0), node("b", 3)]
LINKS = [*wire("a", "s"), *wire("s", "b", 50 * MBIT)]
JOB = job("j", ["a", "b"], [(0, 1, 20 * MBIT, ["a", "s", "b"]), (1, 0, 4 * MBIT, ["b", "s", "a"])])


def test_every_flow_may_use_all_of_each_link_and_is_promised_nothing() -> None:
    capacity = {(link.src, link.dst): link.bandwidth for link in LINKS}
    for name, planned in Planner().plan(view_of(NODES, LINKS, [JOB])).items():
        plain = best_effort_only(planned)
        assert plain.classes
        for flow in plain.classes:
            assert (flow.rate, flow.ceil) == (0, capacity[name, flow.via])
        changed = {"rate": 0, "ceil": None}
        assert [each.model_copy(update=changed) for each in plain.classes] == [
            each.model_copy(update=changed) for each in planned.classes
        ]
        assert plain.model_copy(update={"classes": []}) == planned.model_copy(update={"classes": []})

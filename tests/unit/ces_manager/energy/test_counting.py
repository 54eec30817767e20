"""How what agents tell adds up: whatever is lost, starts again or is told twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.energy import MOST_WATTS, EnergyReport, Source
from ces_manager.energy.counting import MOST, SLACK_S, Counted, NodeCount, count
from ces_manager.energy_book import Told

JOULE = 1_000_000
LONG_S = 1e6  # in which anything can have been used


def told(boot: str, total: int, source: Source = "measured", **allocations: int) -> Told:
    return Told(boot, EnergyReport(source=source, total=total, allocations=allocations))


def test_a_counter_is_counted_once() -> None:
    first = count(NodeCount(), [told("b", 50, a=20)], ["a"], LONG_S)
    again = count(first, [told("b", 50, a=20)], ["a"], LONG_S)
    assert first == again
    assert (first.node.total, first.jobs_measured, first.allocations["a"].total) == (50, 20, 20)
    later = count(again, [told("b", 70, a=30)], ["a"], LONG_S)
    assert (later.node.total, later.jobs_measured, later.allocations["a"].total) == (70, 30, 30)


def test_another_start_of_the_agent_goes_on_from_there() -> None:
    first = count(NodeCount(), [told("b", 50, a=20)], ["a"], LONG_S)
    later = count(first, [told("b", 60, a=25), told("c", 7, a=7)], ["a"], LONG_S)
    assert (later.node.total, later.jobs_measured, later.allocations["a"].total) == (67, 32, 32)


def test_starts_that_another_manager_has_counted_are_not_counted_again() -> None:
    counted = count(NodeCount(), [told("b", 60, a=25), told("c", 7)], ["a"], LONG_S)
    assert count(counted, [told("b", 55, a=25), told("c", 9)], ["a"], LONG_S).node.total == 69


def test_what_is_measured_and_what_is_modelled_is_kept_apart() -> None:
    both = count(NodeCount(), [told("b", 50, a=20), told("c", 30, "modelled", a=10)], ["a"], LONG_S)
    assert both.node == Counted("c", 30, measured=50, modelled=30)
    assert (both.jobs_measured, both.jobs_modelled) == (20, 10)
    assert both.allocations["a"] == Counted("c", 10, measured=20, modelled=10)


def test_others_allocations_get_nothing() -> None:
    after = count(NodeCount(), [told("b", 50, a=20, foreign=30)], ["a"], LONG_S)
    assert (after.jobs_measured, after.allocations.keys()) == (20, {"a"})


def test_nobody_is_believed_to_use_more_than_there_is() -> None:
    after = count(NodeCount(), [told("b", MOST, a=MOST)], ["a"], 0.0)
    assert after.node.total == round(SLACK_S * MOST_WATTS * JOULE) == after.jobs_measured
    starts = [told(f"b{number}", MOST) for number in range(4)]
    assert count(NodeCount(), starts, [], 0.0).node.total == after.node.total, "nor by starting again and again"
    assert count(after, [told("b", 5, a=5)], ["a"], LONG_S).node.total == after.node.total, "nor by going back"


def test_allocations_get_no_more_than_their_node() -> None:
    after = count(NodeCount(), [told("b", 50, a=40, b=40)], ["a", "b"], LONG_S)
    assert (after.node.total, after.jobs_measured) == (50, 50)
    assert [each.total for each in after.allocations.values()] == [40, 10]


def test_sums_stay_within_what_a_column_holds() -> None:
    full = NodeCount(Counted("b", 0, measured=MOST), jobs_measured=MOST)
    assert count(full, [told("b", 50, a=50)], ["a"], LONG_S).node.measured == MOST


STEPS = st.tuples(st.integers(0, 10**9), st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans())


@given(st.lists(STEPS, max_size=30))
def test_jobs_and_the_rest_add_up_to_the_node(steps: list[tuple[int, float, float, bool, bool]]) -> None:
    """Random lives of an agent: it uses something, of which parts are two allocations'; heartbeats are lost; it starts
    again. What was told and written before it starts again is counted exactly; what was not is lost, of all alike."""
    known, boot, agent, written, sure = NodeCount(), 0, (0, 0, 0), (0, 0, 0), (0, 0, 0)
    for used, one, other, heard, restarts in steps:
        a = int(used * one)
        agent = (agent[0] + used, agent[1] + a, agent[2] + int((used - a) * other))
        if heard:
            known = count(known, [told(str(boot), agent[0], a=agent[1], b=agent[2])], ["a", "b"], LONG_S)
            written = agent
        if restarts:
            sure = (sure[0] + written[0], sure[1] + written[1], sure[2] + written[2])
            boot, agent, written = boot + 1, (0, 0, 0), (0, 0, 0)
    parts = {name: each.total for name, each in known.allocations.items()}
    assert known.node.total == sure[0] + written[0]
    assert parts.get("a", 0) == sure[1] + written[1]
    assert parts.get("b", 0) == sure[2] + written[2]
    assert known.jobs_measured == sum(parts.values()) <= known.node.total


@given(st.lists(st.tuples(st.integers(0, 10**9), st.booleans()), max_size=30))
def test_a_job_that_moves_has_used_what_its_allocations_did(moves: list[tuple[int, bool]]) -> None:
    """From node to node, an allocation on each: the sum over nodes is that over the job's allocations and the rest."""
    nodes, agents, where = {"n": NodeCount(), "m": NodeCount()}, {"n": (0, 0), "m": (0, 0)}, "n"
    for used, moves_on in moves:
        total, part = agents[where]
        agents[where] = (total + used, part + used // 2)
        allocation = f"of-{where}"
        report = Told("b", EnergyReport(source="measured", total=agents[where][0], allocations={
            allocation: agents[where][1],
        }))  # fmt: skip
        nodes[where] = count(nodes[where], [report], [allocation], LONG_S)
        where = {"n": "m", "m": "n"}[where] if moves_on else where
    job = sum(each.total for node in nodes.values() for each in node.allocations.values())
    assert sum(node.jobs_measured for node in nodes.values()) == job
    assert sum(node.node.total for node in nodes.values()) == sum(used for used, _ in moves)

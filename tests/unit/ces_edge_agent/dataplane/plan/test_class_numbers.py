"""Which traffic classes of a device are a flow's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.desired import FlowClass
from ces_edge_agent.dataplane.plan.class_numbers import LAST, class_numbers

NUMBERS = st.integers(1, 50) | st.integers(LAST - 20, LAST + 50) | st.integers(2 * LAST + 1, 2 * LAST + 50)


def flow(number: int, via: str = "a", kind: str = "data") -> FlowClass:
    return FlowClass.model_validate(
        {"job": "j", "number": number, "kind": kind, "via": via, "src": "1.1.1.1", "dst": "1.1.1.2", "rate": 1}
    )


@given(st.sets(st.tuples(NUMBERS, st.sampled_from("ab"), st.sampled_from(["data", "return"])), max_size=60))
def test_flows_of_a_device_share_no_class(flows: set[tuple[int, str, str]]) -> None:
    given = class_numbers(flow(*each) for each in flows)
    assert given.keys() == {(via, number) for number, via, _ in flows}
    for via in "ab":
        here = [value for (of, _), value in given.items() if of == via]
        assert len(here) == len(set(here))
    assert all(1 <= value <= LAST for value in given.values())


@given(st.sets(NUMBERS, min_size=1, max_size=60), st.data())
def test_a_flow_that_ends_moves_none_of_a_lower_number(numbers: set[int], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(numbers)))
    before = class_numbers(flow(number) for number in numbers)
    after = class_numbers(flow(number) for number in numbers - {gone})
    assert all(after[key] == value for key, value in before.items() if key[1] < gone)


def test_small_numbers_are_their_own() -> None:
    assert class_numbers([flow(1), flow(LAST)]) == {("a", 1): 1, ("a", LAST): LAST}


def test_a_cluster_has_more_flows_than_a_device_has_classes() -> None:
    spread = [flow(number, via) for number, via in zip(range(1, 4 * LAST), "abcd" * LAST, strict=False)]
    assert len(class_numbers(spread)) == len(spread)
    crowded = class_numbers(flow(number) for number in range(7, LAST + 12))
    assert len(crowded) == len(set(crowded.values())) == LAST

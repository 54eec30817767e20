from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ces_common.messages.desired import FlowClass, LinkDevice
from ces_common.shares import LEAST_RATE
from ces_edge_agent.dataplane.netlink.observed import match_keys
from ces_edge_agent.dataplane.plan.objects import Filter, KernelObject, Match, Queue, ShapedClass
from ces_edge_agent.dataplane.plan.shaping import (
    ARP,
    BEST_EFFORT,
    ENVELOPE,
    flow_shape,
    gso_size,
    link_shape,
    lowered,
    pair_match,
)


def flow(**parts: Any) -> FlowClass:
    base: dict[str, Any] = {
        "job": "a", "number": 5, "kind": "data", "via": "n2", "src": "10.1.0.2", "dst": "10.2.0.2", "rate": 80_000_000,
    }  # fmt: skip
    return FlowClass(**(base | parts))


def shape_of(flow: FlowClass, device: str, mtu: int) -> Iterator[KernelObject]:
    return flow_shape(flow, device, mtu, flow.number)


def matches(match: Match, packet: bytes) -> bool:
    return all(packet[offset] & mask == value for offset, mask, value in match)


def packet(length: int, protocol: int, src: tuple[int, ...], dst: tuple[int, ...]) -> bytes:
    """The first 20 bytes of an IPv4 packet, as far as filters look at them."""
    return bytes([0x45, 0, length >> 8, length & 0xFF, 0, 0, 0, 0, 64, protocol, 0, 0, *src, *dst])


@pytest.mark.parametrize(
    ("small_only", "length", "protocol", "dst", "expected"),
    [
        (False, 1500, 17, (10, 2, 0, 2), True),
        (False, 1500, 6, (10, 2, 0, 3), False),
        (True, 52, 6, (10, 2, 0, 2), True),
        (True, 127, 6, (10, 2, 0, 2), True),
        (True, 128, 6, (10, 2, 0, 2), False),
        (True, 1500, 6, (10, 2, 0, 2), False),
        (True, 60, 17, (10, 2, 0, 2), False),
    ],
)
def test_what_a_class_takes(small_only: bool, length: int, protocol: int, dst: tuple[int, ...], expected: bool) -> None:
    match = pair_match("10.1.0.2", "10.2.0.2", small_only)
    assert matches(match, packet(length, protocol, (10, 1, 0, 2), dst)) is expected


def test_a_flow_gets_its_rate_and_no_more() -> None:
    shape, queue, rule = shape_of(flow(), "to-n2", 1500)
    assert isinstance(shape, ShapedClass)
    assert isinstance(queue, Queue)
    assert isinstance(rule, Filter)
    assert (shape.minor, shape.parent) == (10, ENVELOPE)
    assert shape.rate == shape.ceil == 80_000_000
    assert shape.burst == shape.cburst == 15_000  # microseconds
    assert queue.limit == 500_000  # 50 ms
    assert (rule.minor, rule.priority) == (10, 2)


def test_a_slow_class_lets_a_whole_frame_pass() -> None:
    shape = next(iter(shape_of(flow(rate=1_000_000), "to-n2", 1500)))
    assert isinstance(shape, ShapedClass)
    assert shape.burst * shape.rate / 8 / 1e6 >= 1514


def test_what_is_left_of_a_rate_makes_a_class_that_the_kernel_can_have() -> None:
    """Its time for one frame goes into 32 bits of ticks, of which there are 15.6 to a microsecond."""
    shape = next(iter(shape_of(flow(rate=1), "to-n2", 9000)))
    assert isinstance(shape, ShapedClass)
    assert shape.rate == LEAST_RATE
    assert shape.burst * 15.625 < 2**32


def test_an_elastic_flow_may_borrow_and_is_guaranteed_no_more_than_its_rate() -> None:
    shape, queue, _ = shape_of(flow(rate=8_000_000, ceil=80_000_000), "to-n2", 1500)
    assert isinstance(shape, ShapedClass)
    assert isinstance(queue, Queue)
    assert (shape.rate, shape.ceil) == (8_000_000, 80_000_000)
    assert queue.limit == 200_000  # 200 ms at its rate
    below = next(iter(shape_of(flow(rate=8_000_000, ceil=1_000_000), "to-n2", 1500)))
    assert isinstance(below, ShapedClass)
    assert below.ceil == below.rate


def test_a_flow_that_is_promised_nothing_has_the_queue_of_what_it_may_send() -> None:
    shape, queue, _ = shape_of(flow(rate=0, ceil=80_000_000), "to-n2", 1500)
    assert isinstance(shape, ShapedClass)
    assert isinstance(queue, Queue)
    assert (shape.rate, shape.ceil) == (LEAST_RATE, 80_000_000)
    assert queue.limit == 500_000  # 50 ms


@pytest.mark.parametrize("rate", [100_000, 1_000_000, 10_000_000, 1_000_000_000])
def test_a_queue_holds_enough_that_tcp_finds_a_loss_by_itself(rate: int) -> None:
    queue = list(shape_of(flow(rate=rate), "to-n2", 1500))[1]
    assert isinstance(queue, Queue)
    assert queue.limit >= max(16 * 1514, 2 * gso_size(rate, 1500))


def test_acknowledgements_of_a_slow_flow_do_not_wait_for_seconds() -> None:
    queue = list(shape_of(flow(kind="return", small_only=True, rate=32_000), "to-n1", 1500))[1]
    assert isinstance(queue, Queue)
    assert 4 * 142 <= queue.limit <= 32_000 / 8


def test_acknowledgements_come_before_data() -> None:
    data = list(shape_of(flow(), "to-n1", 1500))
    acks = list(shape_of(flow(kind="return", small_only=True, rate=4_000_000), "to-n1", 1500))
    assert isinstance(data[0], ShapedClass)
    assert isinstance(acks[0], ShapedClass)
    assert isinstance(acks[2], Filter)
    assert acks[0].minor == data[0].minor + 1
    assert acks[0].priority < data[0].priority
    assert acks[2].priority == 1


def test_a_link_has_room_for_the_rest_and_for_neighbour_discovery() -> None:
    link = LinkDevice(
        peer="n2", device="to-n2", kind="veth", bandwidth=100_000_000, best_effort=5_000_000, gateway="10.2.0.1"
    )
    classes = {item.minor: item for item in link_shape(link, 1500) if isinstance(item, ShapedClass)}
    assert set(classes) == {ENVELOPE, BEST_EFFORT, ARP}
    assert classes[ENVELOPE].rate == 100_000_000
    assert classes[BEST_EFFORT].rate == classes[BEST_EFFORT].ceil == 5_000_000


@pytest.mark.parametrize("rate", [8_001, 99_999_999])
def test_rates_are_whole_bytes_a_second_as_the_kernel_has_them(rate: int) -> None:
    """Otherwise each look at the kernel would find a difference."""
    shape = next(iter(shape_of(flow(rate=rate, ceil=rate + 9), "to-n2", 1500)))
    assert isinstance(shape, ShapedClass)
    assert (shape.rate, shape.ceil) == (rate // 8 * 8, (rate + 9) // 8 * 8)
    assert lowered(shape, rate - 1001).rate == max((rate - 1001) // 8 * 8, LEAST_RATE)


def test_keys_say_every_byte() -> None:
    assert match_keys(frozenset({(9, 0xFF, 6), (2, 0x80, 0)})) == ["0x00/0x80+2", "0x06/0xff+9"]
    assert match_keys(frozenset()) == ["0x0/0x0+0"]

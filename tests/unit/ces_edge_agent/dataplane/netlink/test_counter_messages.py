"""Counters out of recorded messages of the kernel, and what becomes of bytes that are none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.dataplane.meters import ClassCounters, LinkCounters
from ces_edge_agent.dataplane.netlink.counter_messages import (
    MalformedMessage,
    Message,
    class_counters,
    device_index,
    link_counters,
    messages,
    root_drops,
)

# An HTB class, 1:2.
CLASS = bytes.fromhex(
    "ec0000002800020000000000edc562f4000000000200000002000100ffff0100000002000800010068746200340002003000010000010000"
    "00000000d01213000001000000000000d01213008793030087930300b805000000000000010000004800070014000100ce00000000000000"
    "0300000000000000180003000000000000000000000000000000000000000000180004000300000000000000000000004e9003004e900300"
    "2c000300ce000000000000000300000000000000000000000000000000000000000000000000000000000000180004000300000000000000"
    "000000004e9003004e900300"
)
# The HTB that is the root of device 2.
SHAPER = bytes.fromhex(
    "b40000002400020000000000edc562f4000000000200000000000100ffffffff020000000800010068746200240002001800020011000300"
    "0a000000feff0000000000000000000008000500e803000005000c000000000030000700140001003a010000000000000500000000000000"
    "1800030000000000000000000000000000000000000000002c0003003a010000000000000500000000000000000000000000000000000000"
    "000000000000000000000000"
)
# A VXLAN, device 2; of its attributes only its name, its kind with all that belongs to it, and its counters.
LINK = bytes.fromhex(
    "d80100001000000000000000edc562f4000001000200000043100100000000000a000300746f2d6e32000000cc0017000300000000000000"
    "05000000000000008c00000000000000f4000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000e00012000a00010076786c616e000000d0000200080001006500000008000200"
    "ac1f0102050005000000000005001c0000000000050006000000000005001d000000000008001a0000000000080020000000000005000700"
    "0000000005000b000000000005000c000000000005000d000000000005000e00000000000500190000000000080008002c01000008000900"
    "0000000006000f0012b500000500120001000000050013000000000005001400000000000500150000000000050016000000000005001f00"
    "0100000008000a00000000000c002100f7ffffff000000ff"
)
HEADER = 16  # bytes of a message before its content
HANDLE = 24  # where a message of tc has the handle
PARENT = 28  # where a message of tc names the parent
Parser = Callable[[Message], object]
PARSERS: list[tuple[bytes, Parser]] = [(CLASS, class_counters), (SHAPER, root_drops), (LINK, link_counters)]


def only(data: bytes) -> Message:
    (message,) = messages(data)
    return message


def shortened(data: bytes, length: int) -> Message:
    """A message that says itself that it is no longer."""
    return only(length.to_bytes(4, "little") + data[4:length])


def test_a_class_says_what_it_sent_and_what_waits() -> None:
    assert class_counters(only(CLASS)) == (2, ClassCounters(sent=206, drops=0, waiting=0))
    full = CLASS.replace(
        bytes.fromhex("18000300" + "00" * 20), bytes.fromhex("18000300" + "0200000003000000" + "07" + "00" * 11)
    )
    assert class_counters(only(full)) == (2, ClassCounters(sent=206, drops=7, waiting=3))


def test_classes_of_a_qdisc_that_somebody_else_attached_are_passed_over() -> None:
    """Those of fq_codel have no statistics of the common kind."""
    foreign = CLASS[:HANDLE] + (0x80010002).to_bytes(4, "little") + CLASS[HANDLE + 4 :]
    assert class_counters(only(foreign)) is None
    assert class_counters(shortened(foreign, HANDLE + 12)) is None


def test_the_drops_of_a_device_are_those_of_its_root() -> None:
    assert root_drops(only(SHAPER)) == (2, 0)
    dropped = SHAPER.replace(
        bytes.fromhex("18000300" + "00" * 20), bytes.fromhex("18000300" + "00" * 8 + "09" + "00" * 11)
    )
    assert root_drops(only(dropped)) == (2, 9)
    below = dropped[:PARENT] + (0x10002).to_bytes(4, "little") + dropped[PARENT + 4 :]
    assert root_drops(only(below)) is None


def test_a_tunnel_receives_headers_too_that_it_does_not_count() -> None:
    assert device_index(only(LINK)) == 2
    assert link_counters(only(LINK)) == (2, LinkCounters(sent=244, received=140 + 3 * 14, drops=0))
    other = LINK.replace(b"vxlan", b"dummy")
    assert link_counters(only(other)) == (2, LinkCounters(sent=244, received=140, drops=0))


def test_a_datagram_may_hold_many_messages() -> None:
    found = list(messages(CLASS + SHAPER + LINK))
    assert [device_index(found[2]), root_drops(found[1])] == [2, (2, 0)]
    assert class_counters(found[0]) == class_counters(only(CLASS))
    assert list(messages(b"")) == []


@pytest.mark.parametrize(("data", "parse"), PARSERS)
def test_less_than_a_whole_message_is_refused(data: bytes, parse: Parser) -> None:
    for length in range(1, len(data)):
        with pytest.raises(MalformedMessage):
            list(messages(data[:length]))
    refused = []
    for length in range(HEADER, len(data)):
        try:
            found = parse(shortened(data, length))
        except MalformedMessage:
            refused.append(length)
        else:  # what is desired was before the end, but for the kind of a device
            assert found in (parse(only(data)), parse(only(data.replace(b"vxlan", b"dummy"))))
    assert refused[0] == HEADER
    assert HEADER + 100 in refused


@given(data=st.binary(max_size=200))
def test_any_bytes_are_messages_or_refused(data: bytes) -> None:
    with suppress(MalformedMessage):
        found = list(messages(data))
        assert all(early.end <= late.start for early, late in pairwise(found))


@given(
    recorded=st.sampled_from(PARSERS),
    places=st.lists(st.tuples(st.integers(HEADER, 1000), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_a_damaged_message_is_read_or_refused(recorded: tuple[bytes, Parser], places: list[tuple[int, int]]) -> None:
    data, parse = bytearray(recorded[0]), recorded[1]
    for place, value in places:
        data[HEADER + (place - HEADER) % (len(data) - HEADER)] = value
    with suppress(MalformedMessage):
        parse(only(bytes(data)))

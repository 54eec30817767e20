"""Addresses, ports and flow numbers are free, and those just released rest for a while."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_manager.plans import addresses


def test_subnets_come_from_the_pool_and_rest_before_they_are_used_again() -> None:
    assert addresses.next_subnet(0, []) == ("10.64.0.0/24", 1)
    assert addresses.next_subnet(1, []) == ("10.64.1.0/24", 2)
    assert addresses.next_subnet(1, ["10.64.0.0/24", "10.64.1.0/24"]) == ("10.64.2.0/24", 3)
    everything = [str(subnet) for subnet in addresses.WORKERS.subnets(new_prefix=24)]
    assert addresses.next_subnet(len(everything), everything[1:]) == (everything[0], 1)
    assert addresses.next_subnet(7, everything[:-1]) == (everything[-1], len(everything))
    with pytest.raises(addresses.Exhausted):
        addresses.next_subnet(5, everything)


@given(st.integers(-1, 300), st.sets(st.integers(0, 255), max_size=250))
def test_an_address_is_free_and_not_the_one_just_released(last: int, used: set[int]) -> None:
    subnet = IPv4Network("10.64.7.0/24")
    taken = {str(subnet.network_address + host) for host in used}
    address, host = addresses.next_address(str(subnet), last, taken)
    assert address not in taken
    assert IPv4Address(address) == subnet.network_address + host
    assert 2 <= host <= 254
    assert host != last or used >= set(range(2, 255)) - {last}


def test_addresses_and_ports_run_out() -> None:
    every_address = {f"10.64.7.{host}" for host in range(2, 255)}
    with pytest.raises(addresses.Exhausted):
        addresses.next_address("10.64.7.0/24", 5, every_address)
    every_port = set(range(addresses.FIRST_PORT, addresses.LAST_PORT + 1))
    assert addresses.next_port(0, every_port - {20500}) == 20500
    assert addresses.next_port(addresses.LAST_PORT, set()) == addresses.FIRST_PORT
    with pytest.raises(addresses.Exhausted):
        addresses.next_port(0, every_port)


def free_numbers(last: int, taken: set[int], count: int) -> list[int]:
    return addresses.next_numbers(last, lambda first, until: taken & set(range(first, until + 1)), count)


@given(
    st.integers(0, 60) | st.integers(addresses.LAST_FLOW - 60, addresses.LAST_FLOW),
    st.sets(st.integers(1, 80) | st.integers(addresses.LAST_FLOW - 80, addresses.LAST_FLOW), max_size=60),
    st.integers(0, 40),
)
def test_flow_numbers_are_free_distinct_and_in_range(last: int, taken: set[int], count: int) -> None:
    numbers = free_numbers(last, taken, count)
    assert len(numbers) == len(set(numbers)) == count
    assert not taken & set(numbers)
    assert all(1 <= number <= addresses.LAST_FLOW for number in numbers)


def test_flow_numbers_go_round() -> None:
    assert free_numbers(addresses.LAST_FLOW - 1, {1}, 3) == [addresses.LAST_FLOW, 2, 3]

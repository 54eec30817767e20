"""The network benchmark measures something and leaves nothing behind. How good the figures are is not for tests."""

from __future__ import annotations

import os

import pytest

from ces_testbed.bench.network.experiment import MBIT, changes, rate_of_flows
from ces_testbed.bench.network.row import PREFIX
from ces_testbed.netlink import namespaces

pytestmark = pytest.mark.needs("root")


def test_flows_are_measured_and_namespaces_removed() -> None:
    found = rate_of_flows(10 * MBIT, 2)
    assert [len(flow) for flow in found["each_second"]] == [2] * 4
    assert abs(found["worst_second"]) < 50  # per cent: something flows, and something holds it back
    assert found["opening_ms"]["count"] > 0
    assert namespaces(f"{PREFIX}{os.getpid()}-") == []


def test_changes_break_no_connection() -> None:
    found = changes(2, seed=1)
    assert found["broken_connections"] == 0
    assert len(found["by_udp_ms"]) == len(found["by_tcp_ms"]) == 2
    assert namespaces(f"{PREFIX}{os.getpid()}-") == []

"""Which addresses a node may name as its host's."""

from __future__ import annotations

import pytest

from ces_manager.errors import Invalid
from ces_manager.nodes.host_address import check_host_address

ELSEWHERE = "192.0.2.7"


@pytest.mark.parametrize("address", ["192.0.2.11", "10.0.0.5", "100.64.0.1", "2001:db8::5", "fd00::1"])
def test_a_hosts_address_is_taken(address: str) -> None:
    check_host_address(address, ELSEWHERE)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("roof1", "is no IP address"),
        ("", "is no IP address"),
        ("192.0.2.11/24", "is no IP address"),
        ("fe80::1%eth0", "is no IP address"),
        ("0.0.0.0", "no host's address"),
        ("0.1.2.3", "no host's address"),
        ("::", "no host's address"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"),
        ("::ffff:169.254.169.254", "link-local"),
    ],
)
@pytest.mark.parametrize("asked_from", [ELSEWHERE, "127.0.0.1", None])
def test_what_reaches_no_host_is_refused(address: str, said: str, asked_from: str | None) -> None:
    with pytest.raises(Invalid, match=said) as refused:
        check_host_address(address, asked_from)
    assert refused.value.field == "host_address"
    assert "CES_HOST_ADDRESS" in refused.value.remedy


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_address_is_for_nodes_of_the_managers_machine(address: str) -> None:
    for here in ("127.0.0.1", "::1"):
        check_host_address(address, here)
    for elsewhere in (ELSEWHERE, None, "testclient"):
        with pytest.raises(Invalid, match="this machine itself"):
            check_host_address(address, elsewhere)

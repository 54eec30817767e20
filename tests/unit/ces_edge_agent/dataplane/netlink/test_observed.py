"""Kernel objects from messages."""

from __future__ import annotations

from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from ces_edge_agent.dataplane.netlink.observed import device


def endpoint(sandbox: int) -> ifinfmsg:
    attributes = [
        ("IFLA_IFNAME", "w-a"),
        ("IFLA_MTU", 1500),
        ("IFLA_ADDRESS", "02:00:00:00:00:01"),
        ("IFLA_LINKINFO", {"attrs": [("IFLA_INFO_KIND", "veth")]}),
        ("IFLA_LINK_NETNSID", sandbox),
    ]
    message = ifinfmsg()
    message.setvalue({"index": 7, "flags": 1, "attrs": attributes})
    return message


def test_an_endpoint_whose_sandbox_is_being_taken_down_leads_nowhere() -> None:
    """The kernel numbers it -1, and also the sandbox made in its place, which has no number yet."""
    living, dying = device(endpoint(3)), device(endpoint(-1))
    assert living is not None
    assert living.sandbox == 3
    assert dying is not None
    assert dying.sandbox is None

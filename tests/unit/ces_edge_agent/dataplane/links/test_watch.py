"""Watching links, with a kernel that does as it is told."""

from collections.abc import Callable, Collection

import pytest
from waiting import until

from ces_common.messages.desired import LinkDevice
from ces_edge_agent.dataplane.links.health import START_S
from ces_edge_agent.dataplane.links.watch import LinkWatch
from ces_edge_agent.dataplane.netlink.observed import Shown
from ces_edge_agent.ports import DataPlaneError

LINK = LinkDevice(peer="n2", device="to-n2", kind="veth", bandwidth=10**8, best_effort=10**6, gateway="10.2.0.1")


async def here(function: Callable[[], None]) -> None:
    function()


async def test_a_link_that_cannot_be_encrypted_is_down_and_says_why() -> None:
    now = 0.0
    shown = {"to-n2": Shown(index=2, mtu=1370, fault=None)}
    watch = LinkWatch(lambda devices: shown, here, lambda: now)
    watch.set_links("", [LINK], {"n2": "n2 has told no key"})
    await watch.observe()
    now = START_S
    for watched in watch._links.values():
        watched.health.tick(now)
    (status,) = watch.statuses()
    assert (status.state, status.reason) == ("down", "device to-n2 cannot be encrypted: n2 has told no key")
    watch.set_links("", [LINK])
    await watch.observe()
    (status,) = watch.statuses()
    assert status.state == "up"


async def test_a_watch_that_has_ended_does_not_pass_for_one_that_goes_on() -> None:
    looks = 0

    def look(devices: Collection[str]) -> dict[str, Shown]:
        nonlocal looks
        looks += 1
        raise DataPlaneError("busy") if looks == 1 else RuntimeError("nobody foresaw this")

    watch = LinkWatch(look, here, lambda: 0.0)
    watch.open()
    watch.set_links("", [LINK])
    await until(lambda: looks == 1)
    watch.check()
    watch.set_links("", [LINK])
    await until(lambda: looks == 2)

    def ended() -> bool:
        watch.check()
        return False

    with pytest.raises(RuntimeError, match="nobody foresaw"):
        await until(ended)
    await watch.close()

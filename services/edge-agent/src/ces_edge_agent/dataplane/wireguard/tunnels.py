"""The WireGuard device of a node, kept as its encrypted links need it. Blocking; for use by one thread.

It lies alone in a namespace, from which the links' VXLAN devices send: what comes out of it there was encrypted by the
neighbour whose address it bears, and nothing else gets in. The encrypted packets travel in the host's namespace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET
from typing import Final

import structlog
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from ces_common.messages.desired import DesiredNetwork, LinkDevice
from ces_common.messages.reports import LinkKeys
from ces_common.names import short_hash
from ces_edge_agent.dataplane.netlink import namespace as namespaces
from ces_edge_agent.dataplane.plan.derivation import DEFAULT_MTU, encrypted_mtu
from ces_edge_agent.dataplane.plan.objects import ANYWHERE
from ces_edge_agent.dataplane.wireguard import implementations, uapi
from ces_edge_agent.dataplane.wireguard.config import Neighbour, State, change, neighbours_of, shaken
from ces_edge_agent.dataplane.wireguard.implementations import Kind
from ces_edge_agent.dataplane.wireguard.keys import KeyFile, KeyRotation
from ces_edge_agent.ports import DataPlaneError

log = structlog.get_logger()
PARAMETERS: Final = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1"}
LOOK_S: Final = 1.0  # how often the device is looked after
ROTATION_LOOK_S: Final = 0.1  # while a key is replaced: packets by the next one are dropped until the next look
EXCUSE_S: Final = 20.0  # a link that goes over to another key may miss answers for so long


@dataclass(frozen=True)
class TunnelSettings:
    """``keys``: the file with the node's own; ``port``: of the host, where it takes encrypted packets; ``life_s``: the
    age at which a key is replaced."""

    keys: Path
    port: int
    life_s: float


class Tunnels:
    """``inside``: the namespace of the device, made when it is needed; ``underlay``: the host's."""

    def __init__(
        self,
        settings: TunnelSettings,
        inside: Path,
        underlay: Path,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._inside, self._underlay, self._wall = settings, inside, underlay, wall
        self._device = f"wg-{short_hash(inside.name, 12)}"  # wireguard-go's socket is named after it on the whole host
        self._file = KeyFile(settings.keys)
        self._rotation: KeyRotation | None = None
        self._kind: Kind | None = None
        self._desired: DesiredNetwork | None = None
        self._neighbours: list[Neighbour] = []
        self._mtu = 0
        self._furniture = ("", 0)  # address and MTU that the present device has
        self._lost = False

    def open(self, namespace: Path) -> None:
        """Load the keys, and find out by which implementation links can be encrypted; ``namespace`` is one to try it
        in. Raises DataPlaneError."""
        if self._rotation is None:
            try:
                self._rotation = KeyRotation(self._file.load(self._wall()), self._settings.life_s)
            except (OSError, ValueError) as error:
                raise DataPlaneError(f"the keys of encrypted links cannot be had: {error}") from error
        if self._kind is None and implementations.kernel_has_it(namespace):
            self._kind = "kernel"
        elif self._kind is None and implementations.can_run_program():
            self._kind = "wireguard-go"

    @property
    def told(self) -> LinkKeys | None:
        """What neighbours need to know; None where this machine can encrypt nothing."""
        if self._rotation is None or self._kind is None:
            return None
        return LinkKeys(keys=self._rotation.keys.public, port=self._settings.port)

    @property
    def look_s(self) -> float | None:
        """In which time to ``look``; None where there is nothing to look after."""
        if self._desired is None or self._rotation is None:
            return None
        going_over = self._rotation.on_trial or any(len(each.keys) > 1 for each in self._neighbours)
        return ROTATION_LOOK_S if going_over else LOOK_S

    def rotate(self) -> None:
        """Replace the key as soon as neighbours know the next one. Raises DataPlaneError."""
        if self.told is None or self._rotation is None:
            raise DataPlaneError(implementations.NONE)
        self._rotation.ask()

    def apply(self, desired: DesiredNetwork, underlay_mtu: Mapping[str, int]) -> dict[str, str]:
        """Make the device as the document's encrypted links need it; without any, it goes in ``prune``. Returns
        neighbour -> why the link to it cannot be encrypted. ``underlay_mtu``: neighbour's host -> MTU of the path."""
        links = encrypted_links(desired)
        if not links:
            return {}
        if self._kind is None:
            return {link.peer: implementations.NONE for link in links}
        self._desired = desired
        self._neighbours, faults = neighbours_of(links)
        reached = (underlay_mtu.get(each.endpoint[0], DEFAULT_MTU) for each in self._neighbours)
        self._mtu = encrypted_mtu(max(reached, default=DEFAULT_MTU))
        try:
            self._converge(self._kind)
        except (NetlinkError, OSError, ValueError, DataPlaneError) as error:
            log.warning("links cannot be encrypted", error=_text(error))
            return faults | {each.name: _text(error) for each in self._neighbours}
        return faults

    def prune(self, desired: DesiredNetwork) -> None:
        """Take the device away where no link is encrypted; its program ends with it."""
        if encrypted_links(desired):
            return
        try:
            self.remove()
        except (NetlinkError, DataPlaneError) as error:  # the next document tries again
            log.warning("WireGuard's device could not be taken away", error=_text(error))

    def look(self) -> bool:
        """Mend the device, and go on with what keys are being replaced; whether this node goes over to another key."""
        if self._desired is None or self._kind is None or self._rotation is None:
            return False
        try:
            state = self._converge(self._kind)
            keys, on_trial = self._rotation.keys, self._rotation.on_trial
            self._rotation.look(self._wall(), self._desired.link_keys, shaken(self._neighbours, state))
            if self._rotation.keys != keys:
                self._file.save(self._rotation.keys)
            if self._rotation.on_trial != on_trial:
                self._converge(self._kind)
            return self._rotation.on_trial and not on_trial
        except (NetlinkError, OSError, ValueError, DataPlaneError) as error:
            log.warning("encrypted links cannot be looked after", error=_text(error))
            return False

    def remove(self) -> None:
        """Raises NetlinkError, DataPlaneError."""
        self._desired, self._neighbours = None, []
        if not self._inside.exists():
            return
        with namespaces.netlink(self._inside) as inside:
            self._delete(inside)
        uapi.path_of(self._device).unlink(missing_ok=True)  # what a program that was killed left
        namespaces.remove(self._inside.name)

    def _converge(self, kind: Kind) -> State:
        """Raises NetlinkError, OSError, ValueError, DataPlaneError."""
        assert self._desired is not None
        assert self._rotation is not None
        namespaces.ensure(self._inside.name)
        try:
            state, new = implementations.read(kind, self._device, self._inside), False
        except (OSError, NetlinkError):
            self._lost = True
        if self._lost:
            state, new = self._make(kind), True
        wanted = change(self._rotation.in_use, self._settings.port, self._neighbours, state, self._wall())
        if wanted:
            implementations.write(kind, self._device, self._inside, wanted)
        self._furnish(self._desired.router, new)
        return state

    def _make(self, kind: Kind) -> State:
        """A new device, in the place of one that nobody serves."""
        namespaces.set_parameters(self._inside, PARAMETERS)
        for place in (self._inside, self._underlay):  # an agent that was killed half-way left it in the second one
            with namespaces.netlink(place) as ipr:
                self._delete(ipr)
        implementations.create(kind, self._device, self._underlay, self._inside, self._settings.port)
        self._lost = False
        log.info("links are encrypted", by=kind)
        return implementations.read(kind, self._device, self._inside)

    def _delete(self, inside: IPRoute) -> None:
        for index in inside.link_lookup(ifname=self._device):
            inside.link("del", index=index)

    def _furnish(self, router: str, new: bool) -> None:
        """Address, route and MTU of the device."""
        furniture = (router, self._mtu)
        if furniture == self._furniture and not new:
            return
        self._furniture = ("", 0)
        with namespaces.netlink(self._inside) as inside:
            index = next(iter(inside.link_lookup(ifname=self._device)), None)
            if index is None:
                self._lost = True
                raise DataPlaneError("the device is not where it belongs, and is made again")
            inside.link("set", index=index, mtu=self._mtu, state="up")
            inside.addr("replace", index=index, address=router, prefixlen=32)
            inside.route("replace", dst=ANYWHERE, oif=index, family=AF_INET)
        self._furniture = furniture


def encrypted_links(desired: DesiredNetwork) -> list[LinkDevice]:
    return [link for link in desired.links if link.wireguard is not None]


def _text(error: Exception) -> str:
    if isinstance(error, NetlinkError):
        return os.strerror(error.code)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

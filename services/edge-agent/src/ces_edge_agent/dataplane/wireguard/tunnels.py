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
from pyroute2.netlink.exceptions import NetlinkError

from ces_common.messages.desired import DesiredNetwork, LinkDevice
from ces_common.messages.reports import LinkKeys
from ces_common.names import short_hash
from ces_edge_agent.dataplane.netlink import namespace as namespaces
from ces_edge_agent.dataplane.plan.derivation import DEFAULT_MTU, encrypted_mtu
from ces_edge_agent.dataplane.plan.objects import ANYWHERE
from ces_edge_agent.dataplane.wireguard import implementations, uapi
from ces_edge_agent.dataplane.wireguard.config import Neighbour, State, ahead_of, change, neighbours_of, shaken
from ces_edge_agent.dataplane.wireguard.implementations import Kind
from ces_edge_agent.dataplane.wireguard.keys import KeyFile, KeyRotation, Keys
from ces_edge_agent.dataplane.wireguard.pace import LOOK_S, ROTATION_LOOK_S, Pace
from ces_edge_agent.ports import DataPlaneError

log = structlog.get_logger()
PARAMETERS: Final = {"net/ipv6/conf/all/disable_ipv6": "1", "net/ipv6/conf/default/disable_ipv6": "1"}
EXCUSE_S: Final = 20.0  # for which a link that goes over to another key may miss answers


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
        self._saved: Keys | None = None  # what the file holds
        self._kind: Kind | None = None
        self._fault = implementations.NONE  # why no link can be encrypted, if none can
        self._pace = Pace()
        self._desired: DesiredNetwork | None = None
        self._neighbours: list[Neighbour] = []
        self._mtu = 0
        self._furniture = ("", 0)  # address and MTU that the present device has
        self._lost = False

    def open(self, namespace: Path) -> None:
        """Load the keys, and find out by which implementation links can be encrypted; ``namespace`` is one to try it
        in. What is not to be had is tried again by the next call; until then encrypted links say why they are not."""
        fault = implementations.NONE
        try:
            if self._rotation is None:
                self._saved = self._file.load(self._wall())
                self._rotation = KeyRotation(self._saved, self._settings.life_s)
            if self._kind is None and implementations.kernel_has_it(namespace):
                self._kind = "kernel"
            elif self._kind is None and implementations.can_run_program():
                self._kind = "wireguard-go"
        except DataPlaneError as error:
            fault = str(error)
        except (OSError, ValueError) as error:
            fault = f"the keys of encrypted links cannot be had: {error}"
        if fault not in (implementations.NONE, self._fault):
            log.warning("no link can be encrypted", reason=fault)
        self._fault = fault

    @property
    def told(self) -> LinkKeys | None:
        """What neighbours need to know; None where this machine can encrypt nothing. Only keys that are on disk, which
        a restart does not change."""
        if self._saved is None or self._kind is None:
            return None
        return LinkKeys(keys=self._saved.public, port=self._settings.port)

    @property
    def look_s(self) -> float | None:
        """In which time to ``look``; None where there is nothing to look after."""
        if self._desired is None or self._rotation is None:
            return None
        return ROTATION_LOOK_S if self._rotation.on_trial or self.going_over else LOOK_S

    @property
    def going_over(self) -> frozenset[str]:
        """Neighbours who replace their keys about now."""
        return self._pace.believed(self._wall(), [each.name for each in self._neighbours if each.goes_over])

    def rotate(self) -> None:
        """Replace the key as soon as neighbours know the next one. Raises DataPlaneError."""
        if self.told is None or self._rotation is None:
            raise DataPlaneError(self._fault)
        self._rotation.ask()

    def apply(self, desired: DesiredNetwork, underlay_mtu: Mapping[str, int]) -> dict[str, str]:
        """Make the device as the document's encrypted links need it; without any, it goes in ``prune``. Returns
        neighbour -> why the link to it cannot be encrypted. ``underlay_mtu``: neighbour's host -> MTU of the path."""
        links = encrypted_links(desired)
        if not links:
            return {}
        if self._kind is None or self._rotation is None:
            return {link.peer: self._fault for link in links}
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
            self._save(self._rotation.keys)  # what could not be saved before: nothing goes on without it
            on_trial, ahead = self._rotation.on_trial, ahead_of(self._desired.node, self._neighbours)
            self._rotation.look(self._wall(), self._desired.link_keys, shaken(self._neighbours, state), ahead)
            self._save(self._rotation.keys)
            if self._rotation.on_trial != on_trial:
                self._converge(self._kind)
            return self._rotation.on_trial and not on_trial
        except (NetlinkError, OSError, ValueError, DataPlaneError) as error:
            log.warning("encrypted links cannot be looked after", error=_text(error))
            return False

    def _save(self, keys: Keys) -> None:
        """Raises OSError."""
        if keys != self._saved:
            self._file.save(keys)
            self._saved = keys

    def remove(self) -> None:
        """Raises NetlinkError, DataPlaneError."""
        self._desired, self._neighbours = None, []
        if not self._inside.exists():
            return
        with namespaces.netlink(self._inside) as inside:
            implementations.delete(inside, self._device)
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
                implementations.delete(ipr, self._device)
        implementations.create(kind, self._device, self._underlay, self._inside, self._settings.port)
        self._lost = False
        log.info("links are encrypted", by=kind)
        return implementations.read(kind, self._device, self._inside)

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
            for other in namespaces.listing(inside, "get_addr", family=AF_INET, index=index):
                if (former := other.get_attr("IFA_ADDRESS")) != router:  # of a node that has joined again
                    inside.addr("del", index=index, address=former, prefixlen=other["prefixlen"])
            inside.route("replace", dst=ANYWHERE, oif=index, family=AF_INET)
        self._furniture = furniture


def encrypted_links(desired: DesiredNetwork) -> list[LinkDevice]:
    return [link for link in desired.links if link.wireguard is not None]


def _text(error: Exception) -> str:
    if isinstance(error, NetlinkError):
        return os.strerror(error.code)
    return (error.strerror if isinstance(error, OSError) else None) or str(error)

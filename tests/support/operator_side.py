"""Whoever installs by ssh: an operator's machine with the manager behind it, and a device beyond."""

from __future__ import annotations

import httpx
import pytest
from fake_device import FakeDevice

from ces_client.installation.faults import InstallFailed
from ces_client.installation.ssh import Ssh
from ces_client.installation.steps import Installer, Wanted
from ces_common.messages.identities import Identity
from ces_common.messages.membership import JoinToken
from ces_common.roles import Role

SECRET = "ces-join-secret.fingerprint"


class Here:
    """An operator's machine, the manager behind it and the device beyond."""

    def __init__(self, client, manager, samples, device: FakeDevice) -> None:
        self.client, self.manager, self.samples, self.device = client, manager, samples, device
        self.said: list[str] = []
        self.answer = False
        self.asked: list[str] = []
        self.ready = False  # whether the manager counts it as ready from the start
        identity = Identity(name="ops", role=Role.OPERATOR, tenants=[])
        manager.on("GET", "whoami", identity)
        token = JoinToken(token=SECRET, node="roof1", expires_at="2026-01-01T10:00:00Z")
        manager.on("POST", "nodes/tokens", token, status=201)
        self.nodes()

    def nodes(self, *nodes) -> None:
        """What the manager knows; ``roof1`` beside it, once it has joined."""

        def answer(_):
            known = next((node for node in nodes if node.name == "roof1"), None)
            if known is None and (self.device.folder / "token").exists():
                known = self.samples.node("roof1")
            if known is None:
                return self.samples.problem(404, "Not found")
            return httpx.Response(200, json=known.model_dump(mode="json"))

        self.manager.on("GET", "nodes/roof1", answer)

    def confirm(self, key: str) -> bool:
        self.asked.append(key)
        return self.answer

    @property
    def installer(self) -> Installer:
        return Installer(self.client, Ssh("root@roof"), self.said.append, self.confirm, lambda _: None)

    def wanted(self, **more) -> Wanted:
        base = {"node": "roof1", "manager": "https://m:8080", "nats": ("m", 4222), "given": {}}
        return Wanted(**(base | {"wheels": self.device.folder / "wheels"} | more))

    def install(self, **more):
        return self.installer.install(self.wanted(**more))

    def fails(self, *names: str, **more) -> InstallFailed:
        """With these faults, and without anything of the device having changed."""
        before = self.device.files()
        with pytest.raises(InstallFailed) as failed:
            self.install(**more)
        assert [fault.name for fault in failed.value.faults] == list(names)
        assert self.device.files() == before
        return failed.value

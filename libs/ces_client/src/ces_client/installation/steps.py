"""Through an installation, and through its undoing, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from ces_client.client import Client
from ces_client.errors import ApiError, bad_field
from ces_client.installation import settings
from ces_client.installation.checks import KERNEL, Facts, faults_of, steps_to
from ces_client.installation.faults import Fault, InstallFailed
from ces_client.installation.ssh import Ssh, StepFailed
from ces_client.installation.wheels import NoWheels, Platform, SentFile, agent_files, checkout
from ces_common.messages.api import NodeView
from ces_common.roles import Role

JOIN_S = 60.0
READY_S = 60.0
TOKEN_S = 600
LOOK_S = 0.5


@dataclass(frozen=True)
class Wanted:
    """``host_key``: its fingerprint, where the user gave it; ``claimed``: those that the device gave when it applied,
    if it did; ``wheels``: the folder that they are kept in."""

    node: str
    manager: str
    nats: tuple[str, int]
    given: Mapping[str, str]
    wheels: Path
    host_key: str | None = None
    claimed: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass
class Outcome:
    """``steps``: what was done, or with ``dry_run`` what would be."""

    node: str
    changed: bool
    steps: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Installer:
    """``say``: tells of each step as it begins; ``confirm``: asks the user whether the device has this key; what
    it is given says by which names the user's known hosts have it."""

    def __init__(
        self,
        client: Client,
        ssh: Ssh,
        say: Callable[[str], None],
        confirm: Callable[[str], bool],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client, self._ssh, self._say, self._confirm, self._sleep = client, ssh, say, confirm, sleep

    def install(self, wanted: Wanted) -> Outcome:
        """Raises InstallFailed, BadInput, and what the manager refuses with."""
        began = time.monotonic()
        with self._failing(wanted.node):
            self._check_role()
            known = self._node(wanted.node)
            self._check_host_key(wanted)
            facts = self._facts(wanted)
            self._check_node(facts, known, wanted.node)
            agent = settings.settings_for(wanted.node, wanted.manager, facts.address, wanted.given)
            sent = self._files(facts, wanted.wheels)
            order = _order(wanted.node, agent, sent)
            todo = steps_to(facts, order["digest"], order["settings_digest"])
            if wanted.claimed and known is not None and todo:
                said = f"node {wanted.node} is known already, and who applied under its name may be another device"
                self._fail("preflight", "taken", said)
            if wanted.dry_run:
                return Outcome(wanted.node, False, todo, time.monotonic() - began)
            since = time.time()
            if todo:
                self._say(f"sending {len(sent)} files, {sum(each.size for each in sent) / 1e6:.1f} MB")
                since = self._ssh.install(order, sent, lambda: self._token(wanted.node), self._say).get("since", since)
            self._await_ready(wanted.node, float(since), had_to=bool(todo))
        return Outcome(wanted.node, bool(todo), todo, time.monotonic() - began)

    def undo(self, wanted: Wanted) -> Outcome:
        """Raises InstallFailed, BadInput, and what the manager refuses with."""
        began = time.monotonic()
        with self._failing(wanted.node):
            self._check_role()
            known = self._node(wanted.node)
            self._check_host_key(wanted)
            if wanted.dry_run:
                facts = self._facts(wanted)
                steps = ["take the agent away"] if facts.installed.node == wanted.node else []
                return Outcome(wanted.node, False, steps + (["forget the node"] if known else []))
            if known is not None and not known.cordoned:
                self._client.nodes.cordon(wanted.node)
                known = self._node(wanted.node)
            if known is not None and known.allocations:
                self._fail("manager", "busy", f"the node, cordoned now, still has {', '.join(known.allocations[:5])}")
            removed = self._ssh.remove({"node": wanted.node}, self._say).get("removed")
            steps = [f"removed {str(path)[:200]}" for path in removed] if isinstance(removed, list) else []
            if known is not None:
                self._say("forget")
                self._client.nodes.forget(wanted.node)
                steps.append("forgot the node")
        return Outcome(wanted.node, bool(steps), steps, time.monotonic() - began)

    @contextmanager
    def _failing(self, node: str) -> Iterator[None]:
        try:
            yield
        except (StepFailed, NoWheels) as error:
            raise InstallFailed([error.fault], self._ssh.target, node) from error
        except _Faults as error:
            raise InstallFailed(error.faults, self._ssh.target, node) from error

    def _check_role(self) -> None:
        who = self._client.whoami()
        if not Role(who.role).includes(Role.OPERATOR):
            remedy = "log in with an operator's token"
            raise bad_field("Nodes are installed by operators", "token", f"{who.name} is {who.role}", remedy)

    def _node(self, name: str) -> NodeView | None:
        try:
            return self._client.nodes.get(name)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def _check_host_key(self, wanted: Wanted) -> None:
        """Only a device whose key the user knows, or has just confirmed, is logged in to. That of one that has applied
        is always confirmed: who applied may be a stranger who claims the key of a host that the user knows."""
        self._say("host key")
        wrong = self._ssh.try_host_key()
        if wrong is not None and wrong.name != "host-key-unknown":
            raise StepFailed(wrong)
        if wrong is None and wanted.host_key is None and not wanted.claimed:
            return
        key = self._ssh.offered_key()
        if wanted.claimed and key.fingerprint not in wanted.claimed:
            said = f"who applied claims {', '.join(wanted.claimed)}; the device shows {key.fingerprint} ({key.kind})"
            self._fail("host key", "host-key-claimed", said)
        if wanted.host_key is not None and key.fingerprint != wanted.host_key:
            self._fail("host key", "host-key-other", f"the device shows {key.fingerprint} ({key.kind})")
        if wanted.host_key is None:
            shown = f"{key.fingerprint} ({key.kind}), {_known_as(self._ssh.names_of(key))}"
            if not self._confirm(shown):
                name = "host-key-unconfirmed" if wrong is None else "host-key-unknown"
                self._fail("host key", name, f"nobody has confirmed the device's key, {shown}")
        # This connection and all that follow take this key and no other.
        self._ssh.pin(key)
        if wrong is not None and not wanted.dry_run and (path := self._ssh.remember(key)) is not None:
            self._say(f"{key.fingerprint} is kept in {path}")

    def _facts(self, wanted: Wanted) -> Facts:
        """Raises StepFailed, or _Faults with all that keeps an agent from running there."""
        self._say("preflight")
        network = wanted.given.get("CES_NETWORK", "tc")
        reach = {"manager": settings.endpoint_of(wanted.manager), "nats": wanted.nats}
        before = time.time()
        told = self._ssh.facts({"reach": reach, "modules": list(KERNEL) if network == "tc" else []})
        after = time.time()
        try:
            facts = Facts.model_validate(told)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise StepFailed(
                Fault("preflight", "answer", f"the device's answer is not as it should be: {where}")
            ) from error
        # Its clock was read between the two, late rather than early: it starts Python and tries addresses before.
        ahead_s = facts.clock - after if facts.clock > after else min(facts.clock - before, 0.0)
        if found := faults_of(facts, wanted.node, ahead_s):
            raise _Faults(found)
        return facts

    def _check_node(self, facts: Facts, known: NodeView | None, node: str) -> None:
        """What the manager knows by this name must be this device, or none that lives."""
        is_member = facts.installed.member and facts.installed.node == node
        if is_member and known is None:
            self._fail("preflight", "forgotten", f"the device was node {node}, which the manager has forgotten")
        if not is_member and known is not None and known.state == "ready":
            self._fail("preflight", "taken", f"another device is node {node}, and alive")

    def _files(self, facts: Facts, kept: Path) -> list[SentFile]:
        self._say("wheels")
        if facts.glibc is None:  # an architecture's fault already
            raise StepFailed(Fault("wheels", "architecture", "no glibc"))
        platform = Platform(facts.machine, (facts.python[0], facts.python[1]), facts.glibc)
        try:
            return agent_files(checkout(), kept, platform)
        except OSError as error:
            raise StepFailed(Fault("wheels", "wheels", f"{error.filename}: {error.strerror}")) from error

    def _token(self, node: str) -> str:
        return self._client.nodes.create_token(node, ttl_s=TOKEN_S).token

    def _await_ready(self, node: str, since: float, *, had_to: bool) -> None:
        if had_to:
            self._say("ready")
        end = time.monotonic() + READY_S
        while True:
            known = self._node(node)
            if known is not None and known.state == "ready":
                return
            if time.monotonic() > end:
                said = f"the manager has not heard from it for {READY_S:g} s"
                raise StepFailed(Fault("ready", "ready", said, self._ssh.log(since)))
            self._sleep(LOOK_S)

    def _fail(self, step: str, name: str, said: str) -> NoReturn:
        raise StepFailed(Fault(step, name, said))


def _known_as(names: Sequence[str]) -> str:
    return f"which your known hosts have as {', '.join(names)}" if names else "which your known hosts do not have"


class _Faults(Exception):
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(fault.said for fault in faults))
        self.faults = faults


def _order(node: str, agent: Mapping[str, str], sent: list[SentFile]) -> dict[str, Any]:
    env = settings.env_file(agent)
    files = [f"{each.name} {each.sha256}" for each in sorted(sent, key=lambda each: each.name)]
    return {
        "node": node,
        "settings": dict(agent),
        "settings_digest": settings.digest_of(env),
        "env": env,
        "digest": settings.digest_of(env, *files),
        "wait_s": JOIN_S,
    }

"""What may go wrong, by name, and what to do then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ces_client.errors import CesError
from ces_common.messages.api import Problem

REMEDIES = {
    # ssh
    "unknown-host": "check the name, or write HOST's address; ~/.ssh/config may give it a name",
    "refused": "start sshd there, or name its port: ssh://USER@HOST:PORT",
    "unreachable": "check that the device is on and a route leads there; --jump HOST goes through another machine",
    "login": "put your public key there (ssh-copy-id), or name another user; `ssh {target}` must log in",
    "host-key-unknown": "compare it with what the device itself says (ssh-keygen -lf "
    "/etc/ssh/ssh_host_ed25519_key.pub), and add --host-key with it",
    "host-key-unconfirmed": "who applied may have claimed the key of another host that you know: compare it with what "
    "the device itself says (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), and add --host-key with it",
    "host-key-changed": "find out why before anything else. If the device was set up anew, forget "
    "its former key: ssh-keygen -R HOST",
    "host-key-other": "it is not the device that was meant, or somebody is on the way: give the fingerprint that it "
    "has itself",
    "host-key-claimed": "somebody else may have applied under this name, or the address is not the device's own (NAT, "
    "a proxy): look at the device, then name it as ssh reaches it (ces node accept {node} USER@HOST), or refuse it "
    "(ces node refuse {node})",
    "no-ssh": "install the OpenSSH client (openssh-client) on this machine",
    "lost": "run the command again: it goes on where it has to",
    # what the device is like
    "root": "log in as root, or let the user run sudo without a password while this runs",
    "no-python": "apt-get install python3 there (3.11 or later)",
    "python": "install Python 3.11 or later there, as python3 or python3.11",
    "python-parts": "apt-get install python3 there, which has all parts, not python3-minimal",
    "architecture": "a device with 64 bits and glibc, x86_64 or aarch64; others are set up by hand (docs/install.md)",
    "disk": "free 500 MB in /opt and 50 MB in /var/lib and /etc there, or have them mounted writable",
    "clock": "set the clocks (timedatectl set-ntp true): certificates count by them",
    "systemd": "the agent is a unit of systemd's. Elsewhere set it up by hand (docs/install.md), and have a "
    "supervisor of your own run `python -m ces_edge_agent`",
    "manager": "let the device reach it (a firewall on the way?); --manager says where devices reach it",
    "nats": "let the device reach it; where NATS has another address than the manager, --nats HOST:PORT says so",
    "kernel": "install the modules and iproute2 there, or do without bandwidth that is kept: --set network=none",
    "foreign": "it was set up by hand: remove that first, or upgrade it by hand",
    "another-node": "take that one away first (--undo with its --name), or install under that name",
    # what this machine lacks
    "source": "run it in a checkout of CES, from which the agent is built",
    "wheels": "reach a package index once, with what deploy/locks/build.txt names installed beside this "
    "`ces`; the folder that is filled then (--wheels) can be carried elsewhere",
    "no-wheel": "nobody publishes it for this architecture: set it up by hand (docs/install.md), with a compiler",
    # on the way
    "transfer": "run the command again",
    "environment": "see what it says; the agent that was there before, if any, still runs",
    "settings": "correct --set; docs/settings.md has all of them",
    "network": "see what it says; `ip netns` there shows what is left",
    "join": "see the log; once what it says is mended, run the command again",
    "ready": "see the log; the agent must reach NATS where the manager says (CES_ADVERTISED_NATS_URLS)",
    "forgotten": "take the agent away (--undo), then install it again",
    "taken": "choose another --name; or, where this device takes that one's place, drain and forget that one (ces "
    "node drain {node}, ces node forget {node})",
    "busy": "drain it first: ces node drain {node}",
    "in-use": "wait until they have ended, or end them",
    "device": "see what it says",
    "answer": "check what the login shell there prints by itself: it must be silent when no terminal is there",
}
_SAID = (
    ("host-key-changed", r"REMOTE HOST IDENTIFICATION HAS CHANGED|differs from the key for the IP"),
    ("host-key-unknown", r"Host key verification failed|No \w+ host key is known"),
    ("unknown-host", r"Could not resolve hostname|Name or service not known"),
    ("refused", r"Connection refused"),
    ("unreachable", r"timed out|No route to host|Network is unreachable|stdio forwarding failed"),
    ("login", r"Permission denied|Too many authentication failures"),
    ("no-python", r"ces: no python3"),
    ("root", r"sudo: .*(password|not found|sudoers|terminal)|sudo: not found"),
)


@dataclass(frozen=True)
class Fault:
    """``step``: what was going on; ``name``: a key of REMEDIES; ``log``: last lines."""

    step: str
    name: str
    said: str
    log: Sequence[str] = ()

    def remedy(self, target: str, node: str) -> str:
        return REMEDIES[self.name].format(target=target, node=node)


class InstallFailed(CesError):
    """What is wrong, each with its step and remedy."""

    exit_code = 1

    def __init__(self, faults: Sequence[Fault], target: str, node: str) -> None:
        self.faults = tuple(faults)
        errors: list[dict[str, str]] = []
        for fault in faults:
            entry = {"field": f"{fault.step} ({fault.name})", "problem": fault.said}
            errors.append(entry | {"remedy": fault.remedy(target, node)})
            errors += [{"field": "log", "problem": line} for line in fault.log]
        names = ", ".join(fault.name for fault in faults)
        title = f"{target} stays as it is" if faults[0].step in BEFORE else f"{node} on {target} is not done"
        super().__init__(Problem(type="ces:node-install", title=title, status=409, detail=names, errors=errors))


BEFORE = ("manager", "host key", "preflight", "wheels")  # steps that change nothing on the device


def ssh_fault(step: str, status: int, said: str) -> Fault:
    """What a connection that gave no answer died of. ``said``: ssh's standard error."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if not line.startswith("@")), f"ssh ended with status {status}")
    for name, pattern in _SAID:
        found = re.search(pattern, said)
        if found:
            shown = next((line for line in lines if found.group() in line), told)
            return Fault(step, name, shown.strip("@ "), lines[-6:] if name == "host-key-changed" else ())
    return Fault(step, "lost" if status == SSH_STATUS else "answer", told, lines[-6:-1])


SSH_STATUS = 255

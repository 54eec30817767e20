"""Who may publish and subscribe to what. The whole of it, to be read in one go.

``{{name()}}`` stands for the user's own name and is filled in by the server; it must be a whole token. What is not
listed is refused. Reading a stream needs rights on the JetStream API, which are subjects too:

- a durable consumer is made, asked and acknowledged under its own name only, so that no service can move another's
  position;
- an agent gets none of that: with the right to make a consumer it could read every node's keys. It hears its own
  keys as plain messages and reads them by direct get, whose subject names the key.

A requester chooses the reply subject, and the server does not check it. So services, which agents can ask, answer to
inboxes only: no agent can make a service write where the agent itself may not. An agent is asked by services alone
and has no general right to write to inboxes, so it may answer what it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ces_common import subjects

REVOKER: Final = "revoker"
_ME: Final = "{{name()}}"
_API: Final = "$JS.API"


@dataclass(frozen=True, slots=True)
class Permissions:
    """``answers``: may reply once to whatever reply subject a request that it received names."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool


def _consumer(stream: str, durable: str) -> tuple[str, ...]:
    return (
        f"{_API}.CONSUMER.CREATE.{stream}.{durable}",
        f"{_API}.CONSUMER.MSG.NEXT.{stream}.{durable}",
        f"$JS.ACK.{stream}.{durable}.>",
        f"$JS.ACK.*.*.{stream}.{durable}.>",  # the longer form, with domain and account
    )


def _read_desired(key: str) -> str:
    return f"{_API}.DIRECT.GET.{subjects.DESIRED_STREAM}.{subjects.DESIRED_PREFIX}.{key}"


def _service(name: str, publish: tuple[str, ...], subscribe: tuple[str, ...] = ()) -> Permissions:
    """What every central service may do, and what this one may do in addition."""
    return Permissions(
        publish=(
            *_consumer(subjects.EVENT_STREAM, name),
            subjects.dead_letter(name),
            f"{subjects.PREFIX}.rpc.manager.>",
            "_INBOX.>",
            *publish,
        ),
        subscribe=(f"_INBOX.{_ME}.>", f"{subjects.PREFIX}.rpc.{name}.>", *subscribe),
        answers=False,
    )


def _controller(name: str, kind: str, publish: tuple[str, ...], subscribe: tuple[str, ...]) -> Permissions:
    """A controller writes and reads one kind of desired state, on every node."""
    return _service(
        name,
        publish=(
            f"{subjects.DESIRED_PREFIX}.*.{kind}",
            _read_desired(f"*.{kind}"),
            f"{_API}.STREAM.INFO.{subjects.DESIRED_STREAM}",
            *publish,
        ),
        subscribe=subscribe,
    )


def revoker(account: str) -> Permissions:
    """The manager's identity on the system account: it may read and replace the claims of CES's account, which list the
    users that are refused, and nothing else."""
    claims = f"$SYS.REQ.ACCOUNT.{account}.CLAIMS"
    return Permissions(
        publish=(f"{claims}.LOOKUP", f"{claims}.UPDATE"), subscribe=(f"_INBOX.{REVOKER}.>",), answers=False
    )


_APPLIED: Final = f"{subjects.PREFIX}.agent.*.applied"
_STORED: Final = (subjects.EVENT_STREAM, subjects.DEAD_STREAM, subjects.DESIRED_STREAM)

AGENT: Final = "agent"
PERMISSIONS: Final[dict[str, Permissions]] = {
    AGENT: Permissions(
        publish=(
            f"{subjects.PREFIX}.hb.{_ME}",
            f"{subjects.PREFIX}.agent.{_ME}.>",
            _read_desired(f"{_ME}.>"),
        ),
        subscribe=(
            f"{subjects.DESIRED_PREFIX}.{_ME}.*",
            f"{subjects.PREFIX}.rpc.agent.{_ME}.>",
            f"_INBOX.{_ME}.>",
        ),
        answers=True,
    ),
    # The only one that makes and corrects the streams and the bucket; no one may delete or purge them.
    "manager": _service(
        "manager",
        publish=(
            f"{subjects.PREFIX}.evt.>",
            f"{subjects.PREFIX}.rpc.>",
            _read_desired(">"),
            *_consumer(subjects.EVENT_STREAM, subjects.MANAGER_NETWORKS),
            subjects.dead_letter(subjects.MANAGER_NETWORKS),
            *_consumer(subjects.EVENT_STREAM, subjects.MANAGER_REFUSALS),
            subjects.dead_letter(subjects.MANAGER_REFUSALS),
            *_consumer(subjects.DEAD_STREAM, "manager"),
            *(f"{_API}.STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE", "INFO") for name in _STORED),
        ),
        subscribe=(subjects.ALL_HEARTBEATS, subjects.ALL_REPORTS),
    ),
    "scheduler": _service(
        "scheduler",
        publish=(
            subjects.events("plan", "proposed"),
            subjects.events("plan", "refused"),
            subjects.events("revision", "proposed"),
            subjects.events("preemption", "proposed"),
        ),
    ),
    "compute-ctl": _controller("compute-ctl", "compute", publish=(), subscribe=(_APPLIED,)),
    "network-ctl": _controller(
        "network-ctl",
        "network",
        publish=(subjects.events("network"),),
        subscribe=(_APPLIED, subjects.ALL_HEARTBEATS),
    ),
}
SERVICES: Final = tuple(role for role in PERMISSIONS if role != AGENT)

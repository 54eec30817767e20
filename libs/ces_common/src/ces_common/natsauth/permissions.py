"""Who may publish and subscribe to what. The whole of it, to be read in one go.

``{{name()}}`` stands for the user's own name and is filled in by the server; it must be a whole token. What is not
listed is refused. Reading a stream needs rights on the JetStream API, which are subjects too:

- only the manager reads streams. Its durable consumers are made, asked and acknowledged under their own names only;
- the other services hear events as plain messages, on the subjects under which they are published to the stream;
- an agent gets none of the API. It hears the changes of its own desired state as plain messages, which the server sends
  when it stores them, and asks the manager for it otherwise.

A requester chooses the reply subject, and the server does not check it: whoever answers, writes there with rights of
its own. The server answers with all of them, and would execute its answer to any request as a request to the API. So

- an agent may publish nothing that the server itself answers: neither the API nor what a stream stores;
- services, which agents can ask, answer to an inbox only, and to an agent's requests only to that agent's;
- an agent is asked by services alone, and may answer what it is asked. It may publish nothing that an agent hears, or
  it could ask itself and so gain the right to write to any subject;
- no agent goes by a service's name, whose inbox it would hear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ces_common import subjects

REVOKER: Final = "revoker"
_ME: Final = "{{name()}}"
_API: Final = "$JS.API"
_READ_DESIRED: Final = f"{_API}.STREAM.MSG.GET.{subjects.DESIRED_STREAM}"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Subjects that a user may publish and subscribe to. ``answers``: it may also reply, once, to the reply subject of
    each request that it receives."""

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


def _service(name: str, publish: tuple[str, ...], subscribe: tuple[str, ...] = ()) -> Permissions:
    """What every central service may do, and what this one may do in addition."""
    return Permissions(
        publish=(
            f"{subjects.PREFIX}.rpc.manager.>",
            "_INBOX.>",
            *publish,
        ),
        subscribe=(f"_INBOX.{_ME}.>", f"{subjects.PREFIX}.rpc.{name}.>", *subscribe),
        answers=False,
    )


def _follower(name: str, publish: tuple[str, ...], subscribe: tuple[str, ...] = ()) -> Permissions:
    """A service that follows the manager's state: it hears all events."""
    return _service(name, publish=publish, subscribe=(subjects.ALL_EVENTS, *subscribe))


def _controller(name: str, kind: str, publish: tuple[str, ...], subscribe: tuple[str, ...]) -> Permissions:
    """A controller writes one kind of desired state, for every node."""
    return _follower(
        name,
        publish=(
            f"{subjects.DESIRED_PREFIX}.*.{kind}",
            _READ_DESIRED,
            f"{_API}.STREAM.INFO.{subjects.DESIRED_STREAM}",
            *publish,
        ),
        subscribe=subscribe,
    )


def revoker(account: str) -> Permissions:
    """The manager's identity on the system account: it may read and replace the claims of CES's account, which list the
    users that are refused, have servers read their configuration again, and nothing else."""
    claims = f"$SYS.REQ.ACCOUNT.{account}.CLAIMS"
    return Permissions(
        publish=(f"{claims}.LOOKUP", f"{claims}.UPDATE", "$SYS.REQ.SERVER.*.RELOAD"),
        subscribe=(f"_INBOX.{REVOKER}.>",),
        answers=False,
    )


_APPLIED: Final = f"{subjects.PREFIX}.agent.*.applied"
_STORED: Final = (subjects.EVENT_STREAM, subjects.DEAD_STREAM, subjects.DESIRED_STREAM)

AGENT: Final = "agent"
PERMISSIONS: Final[dict[str, Permissions]] = {
    AGENT: Permissions(
        publish=(
            f"{subjects.PREFIX}.hb.{_ME}",
            f"{subjects.PREFIX}.renew.{_ME}",
            f"{subjects.PREFIX}.secrets.{_ME}",
            f"{subjects.PREFIX}.spans.{_ME}",
            f"{subjects.PREFIX}.agent.{_ME}.>",
            *(f"{subjects.PREFIX}.fetch.{_ME}.{kind}" for kind in subjects.DESIRED_KINDS),
        ),
        subscribe=(
            f"{subjects.DESIRED_CHANGES}.{_ME}.*",
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
            _READ_DESIRED,
            *(right for durable in subjects.MANAGER_DURABLES for right in _consumer(subjects.EVENT_STREAM, durable)),
            *(subjects.dead_letter(durable) for durable in subjects.MANAGER_DURABLES),
            *_consumer(subjects.DEAD_STREAM, "manager"),
            *(f"{_API}.STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE", "INFO") for name in _STORED),
        ),
        subscribe=(
            subjects.ALL_HEARTBEATS,
            subjects.ALL_REPORTS,
            subjects.ALL_FETCHES,
            subjects.ALL_RENEWALS,
            subjects.ALL_SECRETS,
            subjects.ALL_SPANS,
        ),
    ),
    "scheduler": _follower(
        "scheduler",
        publish=(
            subjects.events("plan", "proposed"),
            subjects.events("plan", "refused"),
            subjects.events("revision", "proposed"),
            subjects.events("preemption", "proposed"),
            subjects.events("resize", "proposed"),
            subjects.events("cpu", "proposed"),
            subjects.events("deadline", "judged"),
        ),
    ),
    "compute-ctl": _controller("compute-ctl", "compute", publish=(), subscribe=(_APPLIED,)),
    "network-ctl": _controller(
        "network-ctl",
        "network",
        publish=(subjects.events("network"),),
        subscribe=(_APPLIED,),
    ),
    # It hears that something has changed, and asks the manager for all it needs to know and to have done.
    "federation": _follower("federation", publish=()),
}
SERVICES: Final = tuple(role for role in PERMISSIONS if role != AGENT)

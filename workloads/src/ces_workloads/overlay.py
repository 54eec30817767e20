"""Which of the job's flows an algorithm sends over, and what to write in the job file where one is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ces_workloads.peers import BadEnvironment, Membership, Peer


class MissingFlow(BadEnvironment):
    """The job lacks a flow that the algorithm needs; the message names it and the topology that has it."""


@dataclass(frozen=True)
class Neighbours:
    """Those that a worker sends to, and those that it hears from."""

    sends: tuple[Peer, ...]
    hears: tuple[Peer, ...]


def ring(members: Membership) -> Neighbours:
    """To the next rank, and from the previous one."""
    neighbours = Neighbours((members.next,), (members.previous,))
    _check(members, neighbours, "ring all-reduce", "ring")
    return neighbours


def star(members: Membership) -> Neighbours:
    """Both ways between rank 0 and each other rank."""
    if members.world_size < 2:
        raise MissingFlow("a parameter server needs at least two tasks: the first is the server, the others train")
    ends = members.peers[1:] if members.rank == 0 else members.peers[:1]
    return _both_ways(members, ends, "a parameter server", "star")


def tree(members: Membership) -> Neighbours:
    """Both ways with the parent, which is the one neighbour of lower rank, and with each neighbour of higher rank.

    So any tree will do whose parents come before their children: ``topology: tree``, or one written as edges.
    """
    partners = _partners(members)
    before = [peer for peer in partners if peer.rank < members.rank]
    if len(before) != (members.rank > 0):
        found = f"has flows with {' and '.join(p.task for p in before)}" if before else "has a flow with none"
        raise MissingFlow(
            f"E-Tree learning needs a tree: {members.me.task} must have flows with exactly one task before it, "
            f"its parent, but {found} of them; {_remedy('tree')}"
        )
    return _both_ways(members, partners, "E-Tree learning", "tree")


def gossip(members: Membership) -> Neighbours:
    """Both ways with every task that there is any flow with."""
    partners = _partners(members)
    if members.world_size > 1 and not partners:
        raise MissingFlow(
            f"gossip learning needs flows between {members.me.task} and other tasks, and the job has none; "
            f"{_remedy('gossip')}"
        )
    return _both_ways(members, partners, "gossip learning", "gossip")


def _partners(members: Membership) -> tuple[Peer, ...]:
    """The peers that there is a flow with, one way or the other, by rank."""
    me = members.me.task
    tasks = {flow.dst for flow in members.flows if flow.src == me} | {f.src for f in members.flows if f.dst == me}
    return tuple(peer for peer in members.peers if peer.task in tasks)


def _both_ways(members: Membership, peers: Iterable[Peer], algorithm: str, topology: str) -> Neighbours:
    neighbours = Neighbours(tuple(peers), tuple(peers))
    _check(members, neighbours, algorithm, topology)
    return neighbours


def _check(members: Membership, neighbours: Neighbours, algorithm: str, topology: str) -> None:
    me = members.me.task
    needed = [(me, peer.task) for peer in neighbours.sends] + [(peer.task, me) for peer in neighbours.hears]
    there = {(flow.src, flow.dst) for flow in members.flows} | {(me, me)}
    missing = [pair for pair in needed if pair not in there]
    if missing:
        others = f" (nor {len(missing) - 1} more of {me}'s)" if len(missing) > 1 else ""
        raise MissingFlow(
            f"{algorithm} needs a flow from {missing[0][0]} to {missing[0][1]}, which the job does not have{others}; "
            f"{_remedy(topology)}"
        )


def _remedy(topology: str) -> str:
    return f"write `topology: {topology}` under `flows` in the job file"

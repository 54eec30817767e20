from __future__ import annotations

import json
from typing import Any

import pytest

from ces_workloads.peers import BadEnvironment, Flow, Peer, from_environment

PEERS: list[dict[str, Any]] = [
    {"rank": 1, "task": "worker-1", "address": "10.64.2.2", "port": 29400, "node": "n2"},
    {"rank": 0, "task": "worker-0", "address": "10.64.1.2", "port": 29401, "node": "n1"},
    {"rank": 2, "task": "worker-2", "address": "10.64.2.3", "port": 29400, "node": "n2"},
]


def environment(**changes: str) -> dict[str, str]:
    return {
        "RANK": "0",
        "WORLD_SIZE": "3",
        "MASTER_ADDR": "10.64.1.2",
        "MASTER_PORT": "29500",
        "CES_JOB": "digits-ring",
        "CES_TASK": "worker-0",
        "CES_ADDRESS": "10.64.1.2",
        "CES_PORT": "29401",
        "CES_PEERS": json.dumps(PEERS),
        "CES_FLOWS": json.dumps([{"src": "worker-0", "dst": "worker-1", "bandwidth": 50_000_000}]),
    } | changes


def test_reads_what_the_agent_sets() -> None:
    members = from_environment(environment())
    assert (members.job, members.rank, members.world_size) == ("digits-ring", 0, 3)
    assert (members.address, members.port) == ("10.64.1.2", 29401)
    assert [peer.rank for peer in members.peers] == [0, 1, 2]
    assert members.next == Peer(1, "worker-1", "10.64.2.2", 29400, "n2")
    assert members.previous.rank == 2
    assert members.flows == (Flow("worker-0", "worker-1", 50_000_000),)
    assert members.bandwidth_to(members.next) == 50_000_000
    assert members.bandwidth_to(members.previous) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"RANK": ""}, "RANK is not set"),
        ({"RANK": "one"}, "RANK='one' is not a whole number"),
        ({"RANK": "3"}, "RANK=3 is not below WORLD_SIZE=3"),
        ({"RANK": "-1"}, "RANK=-1 is not within"),
        ({"WORLD_SIZE": "4"}, "each rank from 0 to 3 once"),
        ({"CES_PORT": "70000"}, "CES_PORT=70000"),
        ({"CES_TASK": "worker-9"}, "CES_PEERS calls rank 0 'worker-0'"),
        ({"CES_JOB": ""}, "CES_JOB is not set"),
        ({"CES_PEERS": "{"}, "CES_PEERS is not JSON"),
        ({"CES_PEERS": "{}"}, "CES_PEERS must be a JSON list"),
        ({"CES_PEERS": "[1]"}, "CES_PEERS: every entry needs 'rank'"),
        ({"CES_PEERS": json.dumps([*PEERS[:2], PEERS[1]])}, "but names [0, 0, 1]"),
        ({"CES_PEERS": json.dumps([{**PEERS[0], "port": True}])}, "needs 'port' (int)"),
        ({"CES_FLOWS": '[{"src": "worker-0"}]'}, "CES_FLOWS: every entry needs 'dst' (str)"),
    ],
)
def test_says_which_variable_is_wrong(changes: dict[str, str], words: str) -> None:
    with pytest.raises(BadEnvironment) as refusal:
        from_environment(environment(**changes))
    assert words in str(refusal.value)

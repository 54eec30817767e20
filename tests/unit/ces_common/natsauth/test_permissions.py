"""What keeps an agent from reaching more than its rights say, by asking itself or by having the server answer it."""

from __future__ import annotations

import pytest

from ces_common import subjects
from ces_common.bus.nats_streams import STREAMS
from ces_common.natsauth.permissions import AGENT, PERMISSIONS, SERVICES


def overlap(one: str, other: str) -> bool:
    """Whether some subject falls under both patterns."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if "*" not in (a, b) and a != b:
            return False
    return len(left) == len(right)


def of(patterns: tuple[str, ...], name: str) -> list[str]:
    return [pattern.replace("{{name()}}", name) for pattern in patterns]


@pytest.mark.parametrize("listener", ["n1", "n2", "agent", "hb", "fetch", "renew", "secrets", "desired", "rpc"])
@pytest.mark.parametrize("speaker", ["n1", "agent", "hb", "fetch", "renew", "secrets", "desired", "rpc"])
def test_no_agent_may_say_what_an_agent_hears(speaker: str, listener: str) -> None:
    """A request that it can send to itself would let it answer to any subject that it likes."""
    agent = PERMISSIONS[AGENT]
    said, heard = of(agent.publish, speaker), of(agent.subscribe, listener)
    assert [(one, other) for one in said for other in heard if overlap(one, other)] == []


def test_an_agent_may_say_nothing_that_the_server_itself_answers() -> None:
    stored = [subject for stream in STREAMS for subject in stream.subjects or []]
    said = of(PERMISSIONS[AGENT].publish, "n1")
    assert [each for each in said if any(overlap(each, pattern) for pattern in (*stored, "$JS.>", "$SYS.>"))] == []


def test_nobody_but_the_server_tells_of_desired_state() -> None:
    told = f"{subjects.DESIRED_CHANGES}.>"
    for role, permissions in PERMISSIONS.items():
        assert [each for each in of(permissions.publish, "n1") if overlap(each, told)] == [], role


@pytest.mark.parametrize("role", SERVICES)
def test_no_service_may_delete_or_purge(role: str) -> None:
    verbs = ("$JS.API.STREAM.DELETE.*", "$JS.API.STREAM.PURGE.*", "$JS.API.STREAM.MSG.DELETE.*")
    said = of(PERMISSIONS[role].publish, role)
    assert [each for each in said if any(overlap(each, verb) for verb in verbs)] == []
